//! A server's list of models, or an error.

use serde_json::{Value, json};
use toolcrib_core::{ModelError, ModelErrorClass, Secret};
use toolcrib_models::{Vendor, VendorModel};
use toolcrib_testbed::{Bytes, CannedServer, Reply};

const KEY: &str = "sk-proj-Zq7Wm2Rt9Kx4Lp8Vn3Bc6Yd1Hs5";

async fn listed(vendor: Vendor, reply: Reply) -> Result<Vec<String>, ModelError> {
    let server = CannedServer::start([reply]).await.unwrap();
    let builder = VendorModel::builder(vendor, "m").base_url(server.url()).key(Secret::new(KEY));
    builder.build().unwrap().list_models().await
}

/// A list in that vendor's format.
fn list(vendor: Vendor, names: &[&str]) -> Value {
    let (frame, name) = match vendor {
        Vendor::OpenAi | Vendor::Anthropic => ("data", "id"),
        _ => ("models", "name"),
    };
    let models: Value = names.iter().map(|text| json!({ name: text })).collect();
    json!({ frame: models })
}

#[tokio::test]
async fn names_that_show_the_key_are_left_out() {
    for vendor in Vendor::ALL {
        let shows = format!("mine-{KEY}");
        let reply = Reply::json(200, &list(vendor, &["a", KEY, &shows, &KEY[10..], "b"]));
        assert_eq!(listed(vendor, reply).await.unwrap(), ["a", "b"], "{vendor}");
    }
}

#[tokio::test]
async fn what_is_no_list_of_models_is_an_error() {
    for vendor in Vendor::ALL {
        assert_eq!(listed(vendor, Reply::json(200, &list(vendor, &[]))).await.unwrap(), [""; 0]);
        for json in [
            json!({}),
            json!(null),
            json!([1, 2]),
            json!("models"),
            json!({ "data": "x", "models": "x" }),
            json!({ "object": "list" }),
        ] {
            let error = listed(vendor, Reply::json(200, &json)).await.unwrap_err();
            assert_eq!(error.class, ModelErrorClass::Protocol, "{vendor}: {json}");
            assert!(error.message.contains("not a list of models"), "{error}");
            assert!(error.message.contains("check the base URL"), "{error}");
        }
        let fails = json!({ "error": { "message": "The cluster is on fire." } });
        let error = listed(vendor, Reply::json(200, &fails)).await.unwrap_err();
        assert!(error.message.ends_with("it says: The cluster is on fire."), "{vendor}: {error}");
    }
}

#[tokio::test]
async fn a_list_without_end_is_an_error_that_says_so() {
    for vendor in Vendor::ALL {
        let mebibyte = Bytes::from(vec![b' '; 1024 * 1024]);
        let reply = Reply::new(200).pieces(vec![mebibyte; 9]);
        let error = listed(vendor, reply).await.unwrap_err();
        assert_eq!(error.class, ModelErrorClass::Protocol, "{vendor}: {error}");
        let said = "its list of models has more than 8388608 bytes; check the base URL";
        assert_eq!(error.message, said);
    }
}
