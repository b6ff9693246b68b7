//! The engine's skills as resources, for clients with the skills extension.

use std::sync::Arc;

use rmcp::model::{ClientRequest, CustomRequest, ReadResourceRequestParams, ResourceContents};
use serde_json::{Value, json};
use toolcrib_core::{ArgumentMatch, Policy, Rule, SkillId};
use toolcrib_engine::{Engine, Redactor, Skill, SkillFileError, SkillFiles, Skills};
use toolcrib_gateway::{Access, Gateway};

use super::support::{Client, ERAS, Era, engine, tool};

#[derive(Debug)]
struct Shelf;

impl SkillFiles for Shelf {
    fn list(&self) -> Result<Vec<String>, SkillFileError> {
        Ok(["logo.bin", "refs/deep/tax.md", "refs/vat.md"].map(str::to_owned).to_vec())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SkillFileError> {
        match path {
            "logo.bin" => Ok(vec![0xff, 0xfe]),
            "refs/deep/tax.md" => Ok(b"Tax, and a-secret-value.".to_vec()),
            "refs/vat.md" => Ok(b"VAT.".to_vec()),
            _ => Err(SkillFileError::NotThere),
        }
    }
}

fn skills() -> Skills {
    let id = |id: &str| SkillId::new(id).unwrap();
    let billing = Skill::new(id("billing"), "About \"billing\":\nall.", "How to do billing.");
    Skills::new(vec![
        billing.tools(["refund"]).files(Arc::new(Shelf)),
        Skill::new(id("secret"), "For others.", "Hidden."),
        Skill::new(id("Not A Name"), "Unnamed.", "Unnamed."),
    ])
    .unwrap()
}

fn desk() -> Engine {
    let denied =
        Rule::deny("not yours")
            .tools(["read_skill"])
            .arguments([ArgumentMatch::at("/id").unwrap().equals("secret")]);
    let redactor = Redactor::new(["a-secret-value".to_owned()]);
    Engine::builder()
        .redactor(redactor)
        .tool(tool("refund"))
        .skills(skills())
        .policy(Policy::of([denied]))
        .build()
        .unwrap()
}

async fn directory(client: &Client, uri: &str) -> Result<Value, i32> {
    let params = json!({ "uri": uri });
    let request = CustomRequest::new("resources/directory/read", Some(params));
    match client.peer.send_request(ClientRequest::CustomRequest(request)).await {
        Ok(result) => Ok(serde_json::to_value(result).unwrap()["resources"].clone()),
        Err(rmcp::ServiceError::McpError(error)) => Err(error.code.0),
        Err(error) => panic!("{error}"),
    }
}

async fn read(client: &Client, uri: &str) -> Option<ResourceContents> {
    let read = client.peer.read_resource(ReadResourceRequestParams::new(uri)).await.ok()?;
    read.contents.into_iter().next()
}

#[tokio::test]
async fn a_client_lists_and_reads_the_skills_that_it_may_activate_and_digests_agree() {
    let gateway = Gateway::builder(desk()).build();
    for era in ERAS {
        let client = Client::of(&gateway, era, Access::new()).await;
        let skills = client.peer.list_all_skills().await.unwrap();
        assert_eq!(skills.len(), 1, "{era:?}: {skills:?}");
        let billing = &skills[0];
        billing.validate().unwrap();
        assert_eq!(billing.uri, "skill://billing/SKILL.md");
        assert_eq!(billing.frontmatter.description, "About \"billing\":\nall.");
        let rmcp::model::SkillResources::Files(files) = &billing.resources else { panic!("files") };
        let mut texts = Vec::new();
        for file in files {
            let bytes = match read(&client, &file.uri).await.unwrap() {
                ResourceContents::TextResourceContents { text, .. } => text.into_bytes(),
                ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                    assert_eq!(
                        (&*blob, mime_type.as_deref()),
                        ("//4=", Some("application/octet-stream"))
                    );
                    vec![0xff, 0xfe]
                }
                other => panic!("{other:?}"),
            };
            file.verify(&bytes).unwrap();
            texts.push((file.uri.clone(), String::from_utf8_lossy(&bytes).into_owned()));
        }
        assert_eq!(texts.len(), 4);
        let (uri, manifest) = &texts[0];
        assert_eq!(uri, "skill://billing/SKILL.md");
        let tools =
            "\n\nCall `read_skill` with the id `billing` first: it offers the tools of this skill.";
        let tools = if era == Era::Sessions { tools } else { "" };
        assert_eq!(
            *manifest,
            format!(
                "---\nname: billing\ndescription: \"About \\\"billing\\\":\\nall.\"\n---\n\nHow to do billing.{tools}\n"
            )
        );
        assert!(texts.iter().all(|(_, text)| !text.contains("a-secret-value")), "{texts:?}");
    }
}

#[tokio::test]
async fn a_denied_skill_is_unknown_to_every_method() {
    let gateway = Gateway::builder(desk()).build();
    for era in ERAS {
        let client = Client::of(&gateway, era, Access::new()).await;
        for uri in
            ["skill://secret/SKILL.md", "skill://none/SKILL.md", "skill://billing", "file:///x"]
        {
            let params = rmcp::model::GetSkillRequestParams::new(uri);
            let error = client.peer.get_skill(params).await.unwrap_err();
            let rmcp::ServiceError::McpError(error) = error else { panic!("{error}") };
            assert_eq!(error.code.0, -32602, "{era:?} {uri}: {}", error.message);
        }
        for uri in [
            "skill://secret/SKILL.md",
            "skill://billing/none.md",
            "skill://billing/../secret/SKILL.md",
        ] {
            assert!(read(&client, uri).await.is_none(), "{era:?} {uri}");
        }
        assert_eq!(directory(&client, "skill://secret").await, Err(-32602));
        let listed = client.peer.list_all_resources().await.unwrap();
        let uris: Vec<_> = listed.iter().map(|resource| &*resource.uri).collect();
        assert_eq!(uris, ["skill://billing/SKILL.md"]);
    }
}

#[tokio::test]
async fn folders_are_listed_one_level_at_a_time() {
    let gateway = Gateway::builder(desk()).build();
    let client = Client::of(&gateway, Era::Stateless, Access::new()).await;
    let children = async |uri: &str| {
        let children = directory(&client, uri).await.unwrap();
        let child =
            |child: &Value| format!("{} {}", child["uri"], child["mimeType"]).replace('"', "");
        children.as_array().unwrap().iter().map(child).collect::<Vec<_>>()
    };
    assert_eq!(
        children("skill://billing").await,
        [
            "skill://billing/SKILL.md text/markdown",
            "skill://billing/logo.bin application/octet-stream",
            "skill://billing/refs inode/directory",
        ]
    );
    assert_eq!(
        children("skill://billing/refs").await,
        ["skill://billing/refs/deep inode/directory", "skill://billing/refs/vat.md text/markdown"]
    );
    for none in
        ["skill://billing/refs/vat.md", "skill://billing/refs/", "skill://billing/none", "x"]
    {
        assert_eq!(directory(&client, none).await, Err(-32602), "{none}");
    }
}

#[tokio::test]
async fn without_skills_the_extension_is_not_declared() {
    for era in ERAS {
        let client = Client::to(engine().tool(tool("a")), era).await;
        let info = client.peer.peer_info().unwrap();
        assert!(info.capabilities.extensions.is_none() && info.capabilities.resources.is_none());
        let request = ClientRequest::CustomRequest(CustomRequest::new("skills/list", None));
        let refused = client.peer.send_request(request).await;
        let Err(rmcp::ServiceError::McpError(error)) = refused else { panic!("{refused:?}") };
        assert_eq!(error.code.0, -32601);
    }
}
