//! Pages for a browser: no script, no resource, no request. The HTML is in templates; both share the
//! stylesheet.

mod text;
mod trace;
mod usage;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use minijinja::{
    Environment, Error, UndefinedBehavior, context, syntax::SyntaxConfig, value::Value,
};
use sha2::{Digest as _, Sha256};

use self::text::esc;
pub(crate) use self::{trace::trace_page, usage::usage_page};
use super::{
    sessions::time,
    text::{count, grouped, one_line},
    trace::{money, took},
};

/// The stylesheet, the only one that the policy of a page allows.
const STYLE: &str = include_str!("style.css");

/// The environment with the parts that every template may use.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    // Escapes hidden characters too, unlike the built-in escaping.
    environment.set_formatter(|output, _, value| {
        let text = value.to_string();
        Ok(output.write_str(&if value.is_safe() { text } else { esc(&text) })?)
    });
    environment.add_global("style", Value::from_safe_string(STYLE.to_owned()));
    environment.add_global("style_hash", BASE64_STANDARD.encode(Sha256::digest(STYLE)));
    environment.add_global("version", env!("CARGO_PKG_VERSION"));
    environment.add_filter("count", count::<u64>);
    environment.add_filter("grouped", grouped);
    environment.add_filter("money", money);
    environment.add_filter("one_line", one_line);
    environment.add_filter("time", time);
    environment.add_filter("took", took);
    environment.add_template("head.html", include_str!("head.html"))?;
    Ok(environment)
}

/// The beginning of a page, up to its body.
fn head(environment: &Environment<'_>, title: &str) -> Result<Value, Error> {
    let head = environment.get_template("head.html")?.render(context! { title })?;
    Ok(Value::from_safe_string(head))
}
