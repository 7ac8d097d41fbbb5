//! The log: level and format, written to standard error.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::{LogConfig, LogFormat};

/// Installs the log for the whole process, once.
///
/// # Errors
/// If the level cannot be read, or a log is installed already.
pub fn install(config: &LogConfig) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.level)
        .map_err(|error| format!("log.level = {:?}: {error}; use error, warn, info, debug or trace", config.level))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_span_events(FmtSpan::NONE)
        .with_target(true);
    let installed = match config.format {
        LogFormat::Text => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(is_terminal).try_init()
        }
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    installed.map_err(|error| format!("cannot install the log: {error}"))
}
