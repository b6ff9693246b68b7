//! OpenAPI documents that a command fetches.

use std::net::IpAddr;

use toolcrib_capabilities::http::{HttpClient, HttpRequest, Url};
use toolcrib_core::CancellationToken;

use crate::problem::Problem;

/// The limit on a fetched document, in bytes.
const MAX_DOCUMENT: usize = 32 * 1024 * 1024;

/// Whether a word of the command line is a URL.
pub(crate) fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// An OpenAPI document from a URL, and the URL at which it was found. This machine is permitted if the
/// user typed its name, not for a redirect of another host.
pub(crate) async fn fetched(
    url: &str,
    cancellation: &CancellationToken,
) -> Result<(Url, String), Problem> {
    let parsed =
        Url::parse(url).map_err(|error| Problem::usage(format!("{url} is not a URL: {error}")))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        let host = parsed.host_str().unwrap_or_default();
        return Err(Problem::usage(format!(
            "the URL of {host} has a user or a password, which is not sent; download the document, and name \
             its file"
        )));
    }
    let failed = |problem: String| Problem::failed("not_fetched", format!("{url}: {problem}"));
    let local = ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|net| net.parse().ok());
    let local = local.filter(|_| names_this_machine(&parsed));
    let client = HttpClient::builder().allow_addresses(local).build();
    let mut request = HttpRequest::get(url);
    request.max_body_bytes = MAX_DOCUMENT;
    let response =
        client.send(request, cancellation).await.map_err(|error| failed(error.to_string()))?;
    if !response.status.is_success() {
        return Err(failed(format!("the server answered {}", response.status)));
    }
    let text = String::from_utf8(response.body.to_vec())
        .map_err(|_| failed("the document is not UTF-8 text".to_owned()))?;
    Ok((response.final_url, text))
}

fn names_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
