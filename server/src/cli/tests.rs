//! What the command line takes.

use clap::CommandFactory as _;
use persistence::stores::visibility::value::ValueType;

use super::*;
use crate::config::EngineKind;

fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once(&"everrow").chain(arguments))
}

fn dev_config(arguments: &[&str]) -> Config {
    let cli = parse(arguments).unwrap();
    match cli.command.unwrap_or(Command::Dev(cli.dev)) {
        Command::Dev(args) => args.config(),
        other @ (Command::Server(_) | Command::Schema { .. } | Command::Data { .. } | Command::Admin { .. }) => {
            panic!("{other:?} is not dev")
        }
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn no_command_is_dev_with_its_options() {
    for arguments in [&[][..], &["dev"]] {
        let config = dev_config(arguments);
        assert_eq!(config.frontend.listen.to_string(), "127.0.0.1:7233");
        assert_eq!(config.cluster.shards, 4);
        assert_eq!(config.cluster.namespaces, ["default"]);
        assert_eq!(config.store.engine, EngineKind::Embedded);
        assert_eq!(config.http.address.unwrap().to_string(), "127.0.0.1:0");
        assert_eq!(config.metrics.address, None);
    }
    let options = [
        "--http-port",
        "7243",
        "--metrics-port",
        "9090",
        "--ip",
        "0.0.0.0",
        "--port",
        "0",
        "--in-memory",
        "--shards",
        "2",
        "--namespace",
        "a",
        "--namespace",
        "b",
    ];
    for arguments in [&options[..], &[&["dev"][..], &options].concat()] {
        let config = dev_config(arguments);
        assert_eq!(config.frontend.listen.to_string(), "0.0.0.0:0");
        assert_eq!(config.http.address.unwrap().to_string(), "0.0.0.0:7243");
        assert_eq!(config.metrics.address.unwrap().to_string(), "0.0.0.0:9090");
        assert_eq!(config.cluster.shards, 2);
        assert_eq!(config.cluster.namespaces, ["default", "a", "b"]);
        assert_eq!(config.store.engine, EngineKind::Memory);
    }
}

#[test]
fn search_attributes_are_given_by_name_and_type() {
    let config = dev_config(&["--search-attribute", "Customer=Keyword", "--search-attribute", "Amount=Double"]);
    let types: Vec<_> = config.cluster.search_attributes.into_iter().map(|(name, kind)| (name, kind.0)).collect();
    assert_eq!(types, [("Amount".to_owned(), ValueType::Double), ("Customer".to_owned(), ValueType::Keyword)]);
}

#[test]
fn what_cannot_be_meant_is_refused_as_usage() {
    let cases = [
        &["--shards", "0"][..],
        &["--in-memory", "--data", "x"],
        &["--http-port", "70000"],
        &["--search-attribute", "Customer"],
        &["--search-attribute", "Customer=Name"],
        &["--search-attribute", "WorkflowId=Keyword"],
        &["server"],
        &["schema"],
        &["schema", "check"],
        &["data"],
    ];
    for arguments in cases {
        assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
    }
}

#[test]
fn the_version_names_the_api_version() {
    let shown = parse(&["--version"]).unwrap_err().to_string();
    assert!(shown.contains(version::EVERROW) && shown.contains(version::COMPATIBLE_SERVER), "{shown}");
}
