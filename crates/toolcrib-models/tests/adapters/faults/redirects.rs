//! Servers that redirect the request. The request and its key are not sent elsewhere.

use toolcrib_core::ModelErrorClass;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{class, hear, in_time, model};

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = CannedServer::start([]).await.unwrap();
    for vendor in Vendor::ALL {
        for status in [301, 302, 303, 307, 308] {
            for location in [
                format!("{}/v1/chat", elsewhere.url()),
                format!("//{}/", elsewhere.url().trim_start_matches("http://")),
                "https://127.0.0.1:1/".to_owned(),
                "http://localhost:1/".to_owned(),
                "/".to_owned(),
                String::new(),
                "?again".to_owned(),
                "file:///etc/passwd".to_owned(),
                "http://[::1".to_owned(),
                "x".repeat(60_000),
            ] {
                let reply = Reply::new(status).header("location", &location).body("Elsewhere.");
                let server = CannedServer::start(vec![reply; 2]).await.unwrap();
                let model = model(&server, vendor);
                let heard = hear(&model).await;
                assert_eq!(
                    class(&heard),
                    ModelErrorClass::BadRequest,
                    "{vendor} {status} {location}"
                );
                let message = heard.outcome.unwrap_err().message;
                assert!(message.contains("redirects; redirects are not followed"), "{message}");

                let error = in_time(model.list_models()).await.unwrap_err();
                assert_eq!(error.class, ModelErrorClass::BadRequest, "{vendor} {status}: {error}");
                assert_eq!(server.recorder().len(), 2, "{vendor} {status} {location}");
            }
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_redirect_to_nowhere_is_no_answer() {
    for vendor in Vendor::ALL {
        for status in [301, 302, 303, 307, 308] {
            let server =
                CannedServer::start([Reply::new(status).body("Elsewhere.")]).await.unwrap();
            let heard = hear(&model(&server, vendor)).await;
            assert_eq!(class(&heard), ModelErrorClass::Protocol, "{vendor} {status}");
        }
    }
}
