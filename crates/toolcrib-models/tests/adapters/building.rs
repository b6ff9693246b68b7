//! Valid and invalid settings: checked without a request.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{Message, ModelError, ModelErrorClass, Secret};
use toolcrib_models::{
    InvalidModelNameError, InvalidVendorModelError, ModelName, Vendor, VendorModel,
    VendorModelBuilder,
};
use toolcrib_testbed::{CannedServer, Reply};

use crate::support::{ask, request};

fn builder() -> VendorModelBuilder {
    VendorModel::builder(Vendor::OpenAi, "m").base_url("http://127.0.0.1:1")
}

#[test]
fn settings_are_within_their_bounds() {
    let temperature = "`temperature` must be from 0 to 2, and is ";
    let cases = [
        (builder().temperature(f64::NAN), format!("{temperature}NaN")),
        (builder().temperature(f64::INFINITY), format!("{temperature}inf")),
        (builder().temperature(-1.0), format!("{temperature}-1")),
        (builder().temperature(2.1), format!("{temperature}2.1")),
        (
            builder().max_output_tokens(0),
            "`max_output_tokens` must be from 1 to 10000000, and is 0".to_owned(),
        ),
        (
            builder().max_output_tokens(u32::MAX),
            format!("`max_output_tokens` must be from 1 to 10000000, and is {}", u32::MAX),
        ),
        (
            builder().idle_timeout(Duration::ZERO),
            "`idle_timeout` must be more than zero, and is zero".to_owned(),
        ),
        (
            builder().timeout(Duration::ZERO),
            "`timeout` must be more than zero, and is zero".to_owned(),
        ),
    ];
    for (builder, expected) in cases {
        let error = builder.build().unwrap_err();
        assert!(matches!(error, InvalidVendorModelError::Setting { .. }), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }
    for builder in [
        builder().temperature(0.0),
        builder().temperature(2.0),
        builder().max_output_tokens(1),
        builder().timeout(Duration::from_nanos(1)),
    ] {
        builder.build().unwrap();
    }
}

#[test]
fn a_name_is_a_vendor_and_a_model() {
    let parsed = |text: &str| text.parse::<ModelName>();
    let name = |vendor, model: &str| ModelName { vendor, model: model.to_owned() };
    assert_eq!(parsed("openai:m"), Ok(name(Vendor::OpenAi, "m")));
    assert_eq!(parsed("ollama:qwen3:8b"), Ok(name(Vendor::Ollama, "qwen3:8b")));
    for text in ["anthropic", "anthropic:"] {
        let default = Vendor::Anthropic.default_model().unwrap();
        assert_eq!(parsed(text), Ok(name(Vendor::Anthropic, default)));
    }
    for text in ["ollama", "ollama:"] {
        assert_eq!(parsed(text), Err(InvalidModelNameError::NoModel { vendor: Vendor::Ollama }));
    }
    assert_eq!(
        parsed("gpt-5").unwrap_err().to_string(),
        "`gpt-5` is not a model name; write VENDOR:MODEL, where VENDOR is one of: anthropic, openai, \
         gemini, ollama"
    );
    assert_eq!(
        "gpt-5".parse::<Vendor>().unwrap_err().to_string(),
        "unknown vendor `gpt-5`; there are: anthropic, openai, gemini, ollama"
    );
}

#[test]
fn a_builder_shows_no_password_and_no_key() {
    let builder = VendorModel::builder(Vendor::OpenAi, "m")
        .base_url("https://u:secretpw@example.com/v1?key=sk-123")
        .key(Secret::new("sk-456"));
    let shown = format!("{builder:?} {builder:#?}");
    for secret in ["secretpw", "sk-123", "sk-456"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

async fn refused(vendor: Vendor, status: u16, key: Option<&str>) -> (String, ModelError) {
    let server = CannedServer::start([Reply::new(status).body("No key.")]).await.unwrap();
    let mut builder = VendorModel::builder(vendor, "m").base_url(server.url());
    if let Some(key) = key {
        builder = builder.key(Secret::new(key));
    }
    let model = Arc::new(builder.from_env().build().unwrap());
    let heard = ask(&model, request(vec![Message::user("Hello.")], Vec::new())).await;
    let error = heard.outcome.unwrap_err();
    (error.message.clone(), error)
}

#[tokio::test]
async fn an_auth_error_without_a_key_says_how_to_set_one() {
    for vendor in Vendor::ALL {
        let (message, error) = refused(vendor, 401, None).await;
        assert_eq!(error.class, ModelErrorClass::Auth);
        assert!(message.contains("No key."), "{message}");
        let how = format!(
            "together with {}, or give this model a separate key",
            vendor.base_url_variable()
        );
        for part in ["no key was sent", vendor.key_variables()[0], &how] {
            assert!(message.contains(part), "{message}");
        }
        for (status, key) in [(401, Some("sk-0123456789abcdef")), (500, None)] {
            let (message, _) = refused(vendor, status, key).await;
            assert!(!message.contains("no key was sent"), "{message}");
        }
    }
}
