//! `model-server`: plays the vendors' protocols, with a scripted model behind them, for trying
//! clients out by hand.
#![allow(clippy::disallowed_methods, reason = "host crate: it reads what its user names")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says where it listens")]

use std::{env, error::Error, fs, process::ExitCode, sync::Arc, time::Duration};

use toolcrib_models::ScriptedModel;
use toolcrib_testbed::{ModelServer, Protocol};

const USAGE: &str = "usage: model-server --script FILE [--port PORT] [--key KEY] [--model NAME] \
                     [--delay-ms MS] [--chunk-bytes N] [--thoughts]";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line says.
#[derive(Default)]
struct Options {
    script: Option<String>,
    port: u16,
    key: Option<String>,
    model: Option<String>,
    delay: Duration,
    chunk_bytes: Option<usize>,
    thoughts: bool,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        while let Some(flag) = args.next() {
            if flag == "--thoughts" {
                options.thoughts = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            let number = || value.parse().map_err(|_| format!("`{flag}` needs a number"));
            match flag.as_str() {
                "--script" => options.script = Some(value),
                "--key" => options.key = Some(value),
                "--model" => options.model = Some(value),
                "--port" => options.port = u16::try_from(number()?)?,
                "--delay-ms" => options.delay = Duration::from_millis(number()?),
                "--chunk-bytes" => options.chunk_bytes = Some(usize::try_from(number()?)?),
                other => return Err(format!("`{other}` is not an option").into()),
            }
        }
        Ok(options)
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::read(env::args().skip(1))?;
    let path = options.script.ok_or("no script is named")?;
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let model = ScriptedModel::from_toml(&format!("script:{path}"), &text)?;
    let mut server = ModelServer::builder(Arc::new(model))
        .port(options.port)
        .delay(options.delay)
        .thoughts(options.thoughts);
    if let Some(key) = options.key {
        server = server.key(key);
    }
    if let Some(name) = options.model {
        server = server.model_name(name);
    }
    if let Some(bytes) = options.chunk_bytes {
        server = server.chunk_bytes(bytes);
    }
    let server = server.start().await?;
    println!("{}", how_to(&server));
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// What to type elsewhere.
fn how_to(server: &ModelServer) -> String {
    let (key, model) = (server.key(), server.model_name());
    let url = |protocol| server.base_url(protocol);
    let (openai, anthropic) = (url(Protocol::OpenAi), url(Protocol::Anthropic));
    let (gemini, ollama) = (url(Protocol::Gemini), url(Protocol::Ollama));
    format!(
        "listening on {}, model `{model}`; Ctrl-C ends it\n\
         \n\
         openai     export OPENAI_BASE_URL={openai} OPENAI_API_KEY={key}\n\
         anthropic  export ANTHROPIC_BASE_URL={anthropic} ANTHROPIC_API_KEY={key}\n\
         gemini     export GOOGLE_GEMINI_BASE_URL={gemini} GEMINI_API_KEY={key}\n\
         ollama     export OLLAMA_HOST={ollama}\n\
         \n\
         curl {openai}/chat/completions -H 'authorization: Bearer {key}' \\\n    \
         -H 'content-type: application/json' -N \\\n    \
         -d '{{\"model\":\"{model}\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"hello\"}}]}}'\n\
         \n\
         with the variables above: toolcrib run -p PROJECT 'hello' --model openai:{model}\n\
         (likewise anthropic:{model}, gemini:{model} and ollama:{model}; OpenAI's Responses are\n\
         spoken where a [model.NAME] says api = \"responses\")",
        server.url()
    )
}
