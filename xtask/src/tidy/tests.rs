//! Each rule on an example, and all of them on the repository.

use super::*;

fn rust(path: &str, text: &str) -> Vec<RustFile> {
    vec![RustFile::new(&File { path: path.to_owned(), text: text.to_owned() })]
}

fn borders_crossed(path: &str, text: &str) -> usize {
    borders::check(&rust(path, text)).len()
}

#[test]
fn the_repository_is_tidy() {
    let found = violations(&crate::tools::repository()).unwrap();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "\n{}", lines.join("\n"));
}

#[test]
fn literals_and_comments_are_not_code() {
    let text = "let a = \"x \\\" y\"; // one\nlet b = r#\"two \" three\"#; /* four /* five */ six */ let c = '\\'';\nlet d: &'a str = f('\"');";
    let source = RustSource::parse(text);
    assert_eq!(
        source.code.split_whitespace().collect::<Vec<_>>().join(" "),
        "let a = ; let b = ; let c = ; let d: & a str = f( );"
    );
    assert_eq!(source.code.lines().count(), 3);
    let strings: Vec<_> = source.strings.iter().map(|literal| (literal.line, literal.text.as_str())).collect();
    assert_eq!(strings, [(1, "\"x \\\" y\""), (2, "r#\"two \" three\"#")]);
}

#[test]
fn functions_are_measured_to_their_closing_brace() {
    let code = "fn short() {}\ntrait T {\n    fn declared(a: [u8; 2]);\n    fn long()\n    where\n        Self: Sized,\n    {\n        if x {\n        }\n    }\n}\ntype F = fn(i32);\n";
    let measured: Vec<_> = sizes::functions(code).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(measured, [("short".to_owned(), 1, 1), ("long".to_owned(), 4, 7)]);
}

#[test]
fn fields_and_methods_are_counted_over_all_blocks_of_a_type() {
    let code = "pub struct One<T: Fn(u8) -> u8> {\n    pub a: Vec<std::string::String>,\n    b: [u8; 2],\n}\nstruct Two(u8, u8);\n";
    assert_eq!(types::fields(code), [("One".to_owned(), 1, 2)]);
    let code = "impl<T: Fn() -> u8> a::One<T> {\n    fn a(f: fn(u8)) {}\n    pub async fn b(&self) {}\n}\nimpl Clone for One {\n    fn clone() {}\n}\nfn f() -> impl Fn() {\n}\n";
    assert_eq!(types::inherent_methods(code), [("One".to_owned(), 1, 2)]);
}

#[test]
fn a_type_that_is_too_large_is_named_and_its_exception_only_shrinks() {
    let methods = |n: usize| (0..n).map(|n| format!("    fn f{n}() {{}}\n")).collect::<String>();
    let files = |n: usize| {
        let mut files = rust("server/src/history/a.rs", &format!("impl Shard {{\n{}}}\n", methods(20)));
        files.extend(rust("server/src/history/b.rs", &format!("impl Shard {{\n{}}}\n", methods(n))));
        files.extend(rust("server/src/history/tests.rs", &format!("impl Shard {{\n{}}}\n", methods(90))));
        files
    };
    let judged = |n: usize, list: &str| {
        let mut exceptions = Exceptions::parse(list).unwrap();
        let mut found = types::check(&files(n), &mut exceptions);
        found.extend(exceptions.left_over());
        found.into_iter().map(|violation| violation.message).collect::<Vec<_>>()
    };
    assert_eq!(judged(5, ""), [""; 0]);
    assert_eq!(judged(6, ""), ["server/src/history::Shard.methods has 26 methods, 25 are allowed"]);
    let listed = "server/src/history::Shard.methods 27 a reason";
    assert_eq!(judged(7, listed), [""; 0]);
    assert_eq!(judged(8, listed), ["server/src/history::Shard.methods has 28 methods, and must not grow beyond 27"]);
    assert_eq!(judged(6, listed), ["server/src/history::Shard.methods has shrunk to 26 methods: lower it from 27"]);
    assert_eq!(judged(5, listed), ["server/src/history::Shard.methods is small enough or gone: take it off the list"]);
    assert!(Exceptions::parse("server/src/history::Shard.methods 27").is_err(), "an exception has a reason");
}

#[test]
fn the_core_knows_neither_clock_nor_runtime() {
    assert_eq!(borders_crossed("workflow/src/a.rs", "use tokio::sync::Mutex;"), 1);
    assert_eq!(borders_crossed("workflow/src/a.rs", "let now = std::time::SystemTime::now();"), 1);
    assert_eq!(borders_crossed("workflow/src/a.rs", "// tokio::spawn would be wrong\nuse proto::x;"), 0);
}

#[test]
fn a_crate_uses_what_stands_left_of_it() {
    assert_eq!(borders_crossed("persistence/src/a.rs", "use tonic::Status;"), 1);
    assert_eq!(borders_crossed("persistence/src/a.rs", "use workflow::State;"), 0);
    assert_eq!(borders_crossed("loadtest/src/a.rs", "use persistence::engine::Engine;"), 1);
    assert_eq!(borders_crossed("server/cluster/src/a.rs", "use server::history::Shard;"), 1);
    assert_eq!(borders_crossed("server/scheduler/src/a.rs", "let began = Instant::now();"), 1);
    assert_eq!(borders_crossed("server/src/a.rs", "use tonic::transport::server::Router;"), 0);
}

#[test]
fn services_meet_in_their_peers_only() {
    assert_eq!(borders_crossed("server/src/frontend/a.rs", "use crate::history::shard::Shard;"), 1);
    assert_eq!(borders_crossed("server/src/frontend/a.rs", "use crate::{peers, history::{a, b}, matching};"), 2);
    assert_eq!(borders_crossed("server/src/frontend/a.rs", "use crate::peers::Peers;\nuse crate::frontend::b;"), 0);
    assert_eq!(borders_crossed("server/src/node.rs", "use crate::history::Service;"), 0);
}

#[test]
fn cql_text_has_one_home() {
    let text = "let a = \"UPDATE t SET a = ? IF b = ?\";";
    assert_eq!(borders_crossed("persistence-cql/src/engine.rs", text), 1);
    assert_eq!(borders_crossed("persistence-cql/src/statements.rs", text), 0);
    assert_eq!(borders_crossed("server/src/a.rs", "let a = \"the UPDATE is late\";"), 0);
}

#[test]
fn statuses_are_made_in_one_file() {
    let text = "return Err(Status::not_found(id));";
    assert_eq!(borders_crossed("server/src/frontend/a.rs", text), 1);
    assert_eq!(borders_crossed("server/scheduler/src/a.rs", text), 1);
    assert_eq!(borders_crossed("server/cluster/src/errors.rs", text), 0);
    assert_eq!(borders_crossed("server/src/frontend/a.rs", "Status::Running => WorkflowStatus::new()"), 0);
}

#[test]
fn names_say_what_a_thing_is() {
    let named = |path: &str, text: &str| {
        let file = File { path: path.to_owned(), text: format!("//! x\n{text}") };
        wording::check(std::slice::from_ref(&file), &[RustFile::new(&file)]).len()
    };
    assert_eq!(named("server/src/time_utils.rs", ""), 1);
    assert_eq!(named("server/src/shard.rs", "struct ShardManager;\nmod helpers;"), 2);
    assert_eq!(named("server/src/shard.rs", "struct Implicit;\nimpl Shard {}"), 0);
}

#[test]
fn comments_and_documents_are_plain_english() {
    let dialect = |text: &str| {
        let file = File { path: "server/src/a.rs".to_owned(), text: format!("//! x\n{text}") };
        wording::check(&[], &[RustFile::new(&file)]).len()
    };
    assert_eq!(dialect(concat!("// Who", "ever waits is to", "ld.\nfn f() {}")), 2);
    assert_eq!(dialect(concat!("fn f() {} // It waits so ", "long.")), 1);
    assert_eq!(dialect(concat!("let to", "ld = \"for ", "ever\"; // Reports the lag.")), 0);
    let document = |text: &str| File { path: "docs/a.md".to_owned(), text: text.to_owned() };
    assert_eq!(wording::check(&[document(concat!("Lists are to", "ld.\nPlain.\nAn", "ew."))], &[]).len(), 2);
}
