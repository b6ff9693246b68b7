//! Images of the user and of tools: which of them a model sees, and what is said about the others.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use toolcrib_models::Vendor;
use toolcrib_testbed::{Reply, images};

use crate::{
    model_faults::wire::{self, Answer},
    models::{Prepared, reply},
    support::{Outcome, Project},
};

const FILE: &str = r#"
policy_default = "allow"
[files.w]
folder = "w"
[[tool]]
kind = "files"
"#;

fn project(files: &[(&str, &[u8])]) -> Project {
    let project = Project::of(&[("toolcrib.toml", FILE), ("w/empty.txt", "")]);
    for (name, data) in files {
        std::fs::write(project.path().join(name), data).unwrap();
    }
    project
}

fn said(vendor: Vendor, text: &str) -> Reply {
    reply(vendor, &Answer::text(&[text]))
}

fn reads(vendor: Vendor, path: &str) -> Reply {
    let arguments = json!({ "path": path }).to_string();
    reply(vendor, &Answer::default().calling("c1", "read_file", &[&arguments]))
}

fn refused(vendor: Vendor, status: u16, message: &str) -> Reply {
    let body = wire::error_body(vendor, message).to_string();
    Reply::new(status).header("content-type", "application/json").body(body)
}

fn run(server: &Prepared, project: &Project, model: &str, args: &[&str]) -> Outcome {
    let args: Vec<_> = ["run", "--model", model].iter().chain(args).copied().collect();
    server.set(&mut project.command(&args)).output().unwrap().into()
}

/// The bodies of the requests so far.
fn bodies(server: &Prepared) -> Vec<Value> {
    let requests = server.requests();
    requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// The image of the last message of the user, and its media type if the protocol has one.
fn image_of_user(vendor: Vendor, body: &Value) -> Option<(Option<String>, String)> {
    let key = if vendor == Vendor::Gemini { "contents" } else { "messages" };
    let message = body[key].as_array()?.last()?;
    assert_eq!(message["role"], "user");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match vendor {
        Vendor::OpenAi => {
            let url = text(&message["content"][1]["image_url"]["url"])?;
            let (head, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some((Some(head.to_owned()), data.to_owned()))
        }
        Vendor::Anthropic => {
            let source = &message["content"][0]["source"];
            Some((text(&source["media_type"]), text(&source["data"])?))
        }
        Vendor::Gemini => {
            let data = &message["parts"][1]["inlineData"];
            Some((text(&data["mimeType"]), text(&data["data"])?))
        }
        _ => Some((None, text(&message["images"][0])?)),
    }
}

#[test]
fn an_attached_image_is_in_the_users_message_for_each_vendor() {
    // The name says another type than the bytes.
    let png = images::png(3, 2);
    for vendor in Vendor::ALL {
        let project = project(&[("photo.jpg", &png)]);
        let server = Prepared::new(vendor, vec![said(vendor, "A photo."), said(vendor, "Yes.")]);
        let photo = project.path().join("photo.jpg");
        let args = ["--attach", photo.to_str().unwrap(), "What is this?", "--session", "s"];
        let outcome = run(&server, &project, &format!("{vendor}:m"), &args);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("it is not known whether"), "{}", outcome.stderr);
        let first = &bodies(&server)[0];
        let (media_type, data) = image_of_user(vendor, first).unwrap_or_else(|| panic!("{first}"));
        assert!(media_type.is_none_or(|media_type| media_type == "image/png"), "{first}");
        assert_eq!(BASE64_STANDARD.decode(&data).unwrap(), png);
        let text = first.to_string();
        assert!(text.contains("image 1 of this message: image/png, 3 × 2 pixels"), "{text}");

        // The session of the next process contains it, and the prompt begins with the same bytes.
        run(&server, &project, &format!("{vendor}:m"), &["Sure?", "--session", "s"]);
        let second = bodies(&server)[1].to_string();
        assert_eq!(second.matches(&data).count(), 1, "{second}");
    }
}

#[test]
fn an_attached_image_is_in_the_input_of_responses() {
    let project = project(&[("photo.png", &images::png(3, 2))]);
    let server = Prepared::new(Vendor::OpenAi, vec![refused(Vendor::OpenAi, 401, "no")]);
    let model = "[model.r]\nvendor = \"openai\"\nmodel = \"m\"\napi = \"responses\"\n";
    project.write("toolcrib.toml", &format!("{FILE}{model}base_url = \"{}/v1\"\n", server.url()));
    let photo = project.path().join("photo.png");
    run(&server, &project, "r", &["--attach", photo.to_str().unwrap(), "What is this?"]);
    let body = &bodies(&server)[0];
    let content = &body["input"][0]["content"];
    assert_eq!(content[0]["type"], "input_text", "{body}");
    let data = BASE64_STANDARD.encode(images::png(3, 2));
    let image =
        json!({ "type": "input_image", "image_url": format!("data:image/png;base64,{data}") });
    assert_eq!(content[1], image, "{body}");
}

/// The file, the vendor, the model, and what the user reads about it.
const NOT_SHOWN: [(&str, Vendor, &str, &str); 6] = [
    ("good.png", Vendor::OpenAi, "gpt-3.5-turbo", "the model does not see images"),
    ("damaged.png", Vendor::Anthropic, "claude-sonnet-5-5", "it is a damaged PNG image"),
    (
        "still.gif",
        Vendor::Gemini,
        "gemini-3-pro",
        "vendor does not accept image/gif, but: image/png",
    ),
    ("webp", Vendor::Ollama, "m", "vendor does not accept image/webp"),
    ("animated.gif", Vendor::OpenAi, "gpt-5", "it is animated"),
    (
        "wide.png",
        Vendor::Anthropic,
        "claude-sonnet-5-5",
        "8001 × 1 pixels; the model's vendor accepts 8000",
    ),
];

#[test]
fn the_user_reads_why_an_image_is_not_shown() {
    let files: [(&str, &[u8]); 6] = [
        ("good.png", &images::png(3, 2)),
        ("damaged.png", &images::damaged_png()),
        ("still.gif", images::GIF),
        ("webp", images::WEBP),
        ("animated.gif", images::ANIMATED_GIF),
        ("wide.png", &images::png(8001, 1)),
    ];
    let project = project(&files);
    for (name, vendor, model, why) in NOT_SHOWN {
        let server = Prepared::new(vendor, vec![said(vendor, "No."), said(vendor, "No.")]);
        let file = project.path().join(name);
        let (model, file) = (format!("{vendor}:{model}"), file.to_str().unwrap().to_owned());
        let outcome = run(&server, &project, &model, &["--attach", &file, "What is this?"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let notice = outcome.stderr.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(notice.contains(why), "{name}: {}", outcome.stderr);
        let body = &bodies(&server)[0];
        assert_eq!(image_of_user(vendor, body), None, "{body}");
        // The model reads the reason too.
        assert!(body.to_string().contains(why.split(';').next().unwrap()), "{name}: {body}");

        let json = run(&server, &project, &model, &["--attach", &file, "What is this?", "--json"]);
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        let notice = &json["image_notices"][0];
        assert_eq!((&notice["image"], &notice["is_sent"]), (&json!(name), &json!(false)), "{json}");
        assert!(notice["reason"].as_str().unwrap().contains(why), "{json}");
    }
}

#[test]
fn a_conversation_has_no_more_images_than_the_vendor_accepts() {
    let large = images::png(2_001, 1);
    let small: Vec<_> = (1..=12).map(|height| images::png(1, height)).collect();
    let project = project(&[("large.png", &large)]);
    let mut args =
        vec!["--attach".to_owned(), project.path().join("large.png").display().to_string()];
    for (number, data) in small.iter().enumerate() {
        let path = project.path().join(format!("{number}.png"));
        std::fs::write(&path, data).unwrap();
        args.extend(["--attach".to_owned(), path.display().to_string()]);
    }
    let args: Vec<_> = args.iter().map(String::as_str).chain(["Look", "--session", "s"]).collect();
    let vendor = Vendor::Anthropic;
    let server = Prepared::new(vendor, (0..2).map(|_| said(vendor, "Yes.")).collect());
    let model = "anthropic:claude-sonnet-5-5";
    let first = run(&server, &project, model, &args);
    assert!(!first.stderr.contains(".png"), "{}", first.stderr);
    // One of them is large, so there may be 20.
    let second = run(&server, &project, model, &args);
    let told = second.stderr.matches("the conversation has 20 images").count();
    assert_eq!(told, 6, "{}", second.stderr);
    let bodies = bodies(&server);
    let count = |body: &Value| body.to_string().matches("\"media_type\"").count();
    assert_eq!([count(&bodies[0]), count(&bodies[1])], [13, 20]);
    assert_eq!(bodies[0]["messages"][0]["content"][3], bodies[1]["messages"][0]["content"][3]);
}

#[test]
fn a_key_of_the_project_says_whether_a_model_sees_images() {
    for (sees, told) in [("true", None), ("false", Some("the model does not see images"))] {
        let project = project(&[("photo.png", &images::png(3, 2))]);
        let vendor = Vendor::Ollama;
        let server = Prepared::new(vendor, vec![said(vendor, "Yes.")]);
        let model =
            format!("{FILE}[model.o]\nvendor = \"ollama\"\nmodel = \"m\"\nimages = {sees}\n");
        project.write("toolcrib.toml", &format!("{model}base_url = \"{}\"\n", server.url()));
        let photo = project.path().join("photo.png");
        let args = ["--attach", photo.to_str().unwrap(), "What is this?"];
        let outcome = run(&server, &project, "o", &args);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("photo.png"), told.is_some(), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(told.unwrap_or_default()), "{}", outcome.stderr);
        let is_sent = image_of_user(vendor, &bodies(&server)[0]).is_some();
        assert_eq!(is_sent, told.is_none());
    }
}

#[test]
fn a_damaged_image_that_a_tool_reads_is_an_error_and_the_session_goes_on() {
    for vendor in Vendor::ALL {
        let project = project(&[("w/corrupt.png", &images::damaged_png())]);
        let model = format!("{vendor}:m");
        let said = || said(vendor, "It is damaged.");
        let server =
            Prepared::new(vendor, vec![reads(vendor, "corrupt.png"), said(), said(), said()]);
        for message in ["Read it.", "And now?", "And now?"] {
            let outcome = run(&server, &project, &model, &[message, "--session", "s"]);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        }
        let bodies = bodies(&server);
        let data = BASE64_STANDARD.encode(&images::damaged_png()[..30]);
        for body in &bodies {
            assert!(!body.to_string().contains(&data), "{body}");
        }
        assert!(bodies[1].to_string().contains("it is a damaged PNG image"), "{}", bodies[1]);
    }
}

/// The statuses with which servers refuse an image, and what they say.
const REFUSALS: [(Vendor, u16, &str); 5] = [
    (Vendor::Anthropic, 400, "Could not process image"),
    (Vendor::OpenAi, 400, "You uploaded an unsupported image."),
    (
        Vendor::OpenAi,
        500,
        "image input is not supported - hint: you may need to provide the mmproj",
    ),
    (Vendor::Gemini, 400, "Unable to process input image."),
    (Vendor::Ollama, 500, "Failed to load image or audio file"),
];

#[test]
fn a_refused_image_of_the_user_is_left_out_from_then_on() {
    for (vendor, status, words) in REFUSALS {
        let project = project(&[("photo.png", &images::png(3, 2))]);
        let photo = project.path().join("photo.png");
        let (model, said) = (format!("{vendor}:m"), || said(vendor, "I see nothing."));
        // A server's failure may be repeated first.
        let once = "[[reliability]]\nwhen = { stage = \"model\" }\nthen = \"fail_fast\"\n";
        project.write("toolcrib.toml", &format!("{FILE}{once}"));
        let refused = refused(vendor, status, words);
        let server = Prepared::new(vendor, vec![refused, said(), said(), said()]);
        let args = ["--attach", photo.to_str().unwrap(), "What is this?", "--session", "s"];
        let first = run(&server, &project, &model, &args);
        assert_eq!(first.code, Some(0), "{}", first.stderr);
        let why = "the model's vendor refused the request with it";
        assert!(first.stderr.contains(why), "{}", first.stderr);
        let second = run(&server, &project, &model, &["And now?", "--session", "s", "--json"]);
        assert_eq!(second.code, Some(0), "{}", second.stderr);
        let bodies = bodies(&server);
        let data = BASE64_STANDARD.encode(images::png(3, 2));
        let [with, repeated, later] = bodies.as_slice() else { panic!("{bodies:?}") };
        assert!(with.to_string().contains(&data), "{with}");
        let key = if vendor == Vendor::Gemini { "contents" } else { "messages" };
        for body in [repeated, later] {
            assert!(!body.to_string().contains(&data), "{body}");
        }
        // The prompt keeps its bytes: a note is in place of the image.
        let note = |body: &Value| {
            let messages = body[key].as_array().unwrap();
            let message = messages.iter().find(|message| message.to_string().contains("left out:"));
            let mut message = message.unwrap_or_else(|| panic!("{body}")).clone();
            if let Some(block) = message.pointer_mut("/content/0").and_then(Value::as_object_mut) {
                block.remove("cache_control");
            }
            message
        };
        assert_eq!(note(repeated), note(later));

        let shown = project.toolcrib(&["show", "s"]);
        assert!(shown.stdout.contains("is left out: the model's vendor refused it"), "{shown:?}");
    }
}

#[test]
fn if_the_repetition_fails_too_the_first_error_is_shown_and_the_image_stays() {
    let vendor = Vendor::Anthropic;
    let project = project(&[("photo.png", &images::png(3, 2))]);
    let photo = project.path().join("photo.png");
    let replies = vec![
        refused(vendor, 400, "the first reason"),
        refused(vendor, 400, "the second reason"),
        said(vendor, "A photo."),
    ];
    let server = Prepared::new(vendor, replies);
    let args = ["--attach", photo.to_str().unwrap(), "What is this?", "--session", "s"];
    let failed = run(&server, &project, "anthropic:m", &args);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains("the first reason"), "{}", failed.stderr);
    assert!(!failed.stderr.contains("the second reason"), "{}", failed.stderr);
    assert_eq!(bodies(&server).len(), 2, "it is repeated once");
    let later = run(&server, &project, "anthropic:m", &["And now?", "--session", "s"]);
    assert_eq!(later.code, Some(0), "{}", later.stderr);
    let data = BASE64_STANDARD.encode(images::png(3, 2));
    assert!(bodies(&server)[2].to_string().contains(&data));
}

#[test]
fn a_request_without_images_is_not_repeated() {
    let vendor = Vendor::Anthropic;
    let project = project(&[]);
    let server = Prepared::new(vendor, vec![refused(vendor, 400, "no"), said(vendor, "Yes.")]);
    let failed = run(&server, &project, "anthropic:m", &["Hi"]);
    assert_eq!((failed.code, bodies(&server).len()), (Some(1), 1), "{}", failed.stderr);
}

#[test]
fn a_session_with_a_stored_image_that_the_vendor_refuses_goes_on() {
    let vendor = Vendor::Anthropic;
    let project = project(&[("w/good.png", &images::png(3, 2)), ("w/bad.png", &images::png(5, 5))]);
    let replies = vec![
        reads(vendor, "good.png"),
        said(vendor, "Good."),
        reads(vendor, "bad.png"),
        refused(vendor, 400, "Could not process image"),
        // The server fails while the request is repeated, so the image stays in the session.
        refused(vendor, 400, "Something else"),
        refused(vendor, 400, "Something else"),
        refused(vendor, 400, "Could not process image"),
        said(vendor, "Without it."),
        said(vendor, "Still here."),
    ];
    let server = Prepared::new(vendor, replies);
    let codes = ["Read good.png", "Read bad.png", "And now?", "And now?"].map(|message| {
        let outcome = run(&server, &project, "anthropic:m", &[message, "--session", "s"]);
        outcome.code
    });
    let bodies = bodies(&server);
    assert_eq!(codes, [Some(0), Some(1), Some(0), Some(0)], "{bodies:?}");
    let contains =
        |body: &Value, data: Vec<u8>| body.to_string().contains(&BASE64_STANDARD.encode(data));
    let [.., refused, repeated, later] = bodies.as_slice() else { panic!("{bodies:?}") };
    assert!(contains(refused, images::png(5, 5)));
    for body in [repeated, later] {
        // Only the new image is left out: the vendor has accepted the other one.
        assert!(contains(body, images::png(3, 2)) && !contains(body, images::png(5, 5)), "{body}");
    }
}

#[test]
fn another_vendor_may_refuse_an_image_that_the_first_one_has_accepted() {
    let project = project(&[("photo.png", &images::png(3, 2))]);
    let photo = project.path().join("photo.png");
    let args = ["--attach", photo.to_str().unwrap(), "What is this?", "--session", "s"];
    let vendor = Vendor::Anthropic;
    let server = Prepared::new(vendor, vec![said(vendor, "A photo.")]);
    assert_eq!(run(&server, &project, "anthropic:m", &args).code, Some(0));
    let vendor = Vendor::Ollama;
    let refused = refused(vendor, 400, "this model is missing data required for image input");
    let server = Prepared::new(vendor, vec![refused, said(vendor, "I see nothing.")]);
    let outcome = run(&server, &project, "ollama:m", &["And now?", "--session", "s"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}
