//! The arguments of `secret`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Store a secret: asks for the value at a terminal, without showing it; otherwise reads standard
    /// input, without its last line end
    #[command(after_help = "\
Examples:
  toolcrib secret set weather
  pass show weather-key | toolcrib secret set weather

In a toolcrib.toml: [secrets] WEATHER_KEY = { vault = \"weather\" }")]
    Set {
        /// The name of the entry
        name: String,
    },
    /// List the names, without values
    #[command(after_help = "\
Examples:
  toolcrib secret list
  toolcrib secret list --json")]
    List,
    /// Remove a secret
    #[command(after_help = "\
Examples:
  toolcrib secret remove weather")]
    Remove {
        /// The name of the entry
        name: String,
    },
}
