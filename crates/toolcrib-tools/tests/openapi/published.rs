//! Published documents against a validating mock, by hand.
//!
//! ```console
//! $ npm install @stoplight/prism-cli @octokit/openapi @figma/rest-api-spec @scalar/galaxy \
//!     @directus/specs @blockfrost/openapi @ideal-postcodes/openapi rclone-openapi \
//!     @digdir/dialogporten-schema shipengine-openapi
//! $ mkdir documents && cd node_modules && cp rclone-openapi/openapi.json ../documents/rclone.json
//! $ cp @octokit/openapi/generated/api.github.com.json @scalar/galaxy/dist/3.1.json \
//!     @figma/rest-api-spec/openapi/openapi.yaml @directus/specs/dist/openapi.json \
//!     @digdir/dialogporten-schema/swagger.verified.json ../documents
//! $ cp @blockfrost/openapi/openapi.yaml ../documents/blockfrost.yaml
//! $ cp @ideal-postcodes/openapi/dist/openapi.json ../documents/ideal-postcodes.json
//! $ cp shipengine-openapi/openapi.yaml ../documents/shipengine.yaml
//! $ export TOOLCRIB_OPENAPI_DOCUMENTS=$PWD/../documents TOOLCRIB_OPENAPI_MOCK=$PWD/.bin/prism
//! $ cargo test --workspace --test openapi -- --ignored --nocapture published
//! ```
//!
//! The folder has one document per file. The mock checks each request against the document, and
//! answers 422, 401 or 404 to one that contradicts it. Without the two variables the test fails.

use std::{
    env, fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{ToolCall, ToolResult};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_tools::openapi::{Auth, OpenApi, OpenApiSpec};

use crate::{
    sample::VARIANTS,
    server::{Vault, client},
};

struct Mock(Child);

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `None` where the mock cannot read the document.
fn mock(program: &str, document: &Path) -> Option<(Mock, u16)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new(program)
        .args(["mock", "--errors", "-h", "127.0.0.1", "-p", &port.to_string()])
        .arg(document)
        .env("NODE_OPTIONS", "--max-old-space-size=6000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut mock = Mock(child);
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if mock.0.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "the mock does not start");
        thread::sleep(Duration::from_millis(200));
    }
    Some((mock, port))
}

fn clear(result: &ToolResult) -> String {
    result.value.chars().take(600).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs downloaded documents and a mock; see the top of the file"]
async fn published_documents_load_and_their_operations_can_be_called() {
    let folder = env::var_os("TOOLCRIB_OPENAPI_DOCUMENTS").expect("TOOLCRIB_OPENAPI_DOCUMENTS");
    let program = env::var("TOOLCRIB_OPENAPI_MOCK").expect("TOOLCRIB_OPENAPI_MOCK");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let start = Instant::now();
        let text = fs::read_to_string(&file).unwrap();
        let document = OpenApi::parse(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let parsed = start.elapsed();
        let Some((_mock, port)) = mock(&program, &file) else {
            eprintln!("NOT MEASURED: the mock cannot read {}", file.display());
            continue;
        };
        let spec = OpenApiSpec {
            server: Some(format!("http://127.0.0.1:{port}")),
            auth: Auth { any: Some("KEY".into()), by_scheme: Vec::new() },
            ..OpenApiSpec::new()
        };
        let start = Instant::now();
        let tools = spec.build(&document, &here()).unwrap();
        let made = start.elapsed();
        let bytes: Vec<_> =
            tools.iter().map(|tool| tool.input_schema().to_string().len()).collect();
        let withheld: Vec<_> = tools
            .iter()
            .filter_map(|tool| Some((tool.name(), tool.check_available().err()?)))
            .collect();
        for (name, why) in &withheld {
            eprintln!("  withheld {name}: {why}");
        }
        let engine = Engine::builder()
            .secrets(Vault::default())
            .tools(tools.iter().cloned())
            .build()
            .unwrap();
        let (mut fine, mut unanswered, mut refused) = (0, 0, 0);
        for tool in tools.iter().filter(|tool| tool.check_available().is_ok()) {
            let mut problem = None;
            for variant in VARIANTS {
                let args = variant.sample(tool.input_schema(), tool.input_schema(), 0);
                let mut turn = engine.turn(TurnOptions::default()).unwrap();
                let mut iteration = turn.iteration_for(tool.name()).await.unwrap();
                let call = ToolCall::new("1", tool.name().to_string(), args.clone());
                let results = iteration.execute(vec![call]).await;
                let answered = |word: &str| results[0].value.contains(word);
                if results[0].code.is_none() {
                    fine += 1;
                } else if answered("answered 5") || answered("redirects") {
                    // The mock accepted the request, and made no response that is a result.
                    unanswered += 1;
                } else {
                    let told = clear(&results[0]);
                    problem.get_or_insert_with(|| format!("{} {args}: {told}", tool.name()));
                    continue;
                }
                problem = None;
                break;
            }
            if let Some(problem) = problem {
                refused += 1;
                eprintln!("  {problem}");
            }
        }
        let all = document.operations().len();
        eprintln!(
            "{}: {all} operations, {} withheld, {refused} refused, {fine} answered, {unanswered} accepted without a response ({:.1} %); parsed in \
             {parsed:?}, made in {made:?}; median schema {} bytes, largest {}",
            file.file_name().unwrap().to_string_lossy(),
            withheld.len(),
            100.0 * f64::from(fine + unanswered) / all as f64,
            median(bytes.clone()),
            bytes.iter().max().unwrap(),
        );
    }
}

fn median(mut all: Vec<usize>) -> usize {
    all.sort_unstable();
    all[all.len() / 2]
}

fn here() -> HttpClient {
    client()
}
