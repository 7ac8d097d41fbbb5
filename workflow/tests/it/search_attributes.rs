//! Search attributes that a namespace refuses, and that weigh too much.

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, ContinueAsNewWorkflowExecutionCommandAttributes, StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::{Payload, SearchAttributes};
use proto::temporal::api::enums::v1::{CommandType, WorkflowTaskFailedCause as Cause};
use workflow::{CompleteWorkflowTask, Input, RefusedSearchAttributes, Reply, Status};

use crate::others::child_attributes;
use crate::properties::{upsert, value};
use crate::run::{Run, command, continue_as_new, marker};

fn again(attributes: SearchAttributes) -> Command {
    continue_as_new(ContinueAsNewWorkflowExecutionCommandAttributes {
        search_attributes: Some(attributes),
        ..Default::default()
    })
}

fn child(attributes: SearchAttributes) -> Command {
    let start = StartChildWorkflowExecutionCommandAttributes {
        search_attributes: Some(attributes),
        ..child_attributes("child")
    };
    command(
        CommandType::StartChildWorkflowExecution,
        CommandAttributes::StartChildWorkflowExecutionCommandAttributes(start),
    )
}

fn one(name: &str, value: Payload) -> SearchAttributes {
    SearchAttributes { indexed_fields: [(name.to_owned(), value)].into() }
}

/// Failure that a worker gets whose second command is refused for this reason.
fn told(what: Command, refused: RefusedSearchAttributes) -> (Cause, String) {
    let mut run = Run::working();
    let completion = CompleteWorkflowTask {
        refused_search_attributes: [(1, refused)].into(),
        ..run.completion(vec![marker("first"), what])
    };
    let reply = run.input(Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    assert!(run.state.is_running(), "the worker may do better");
    (cause, message)
}

#[test]
fn undefined_attributes_fail_their_task() {
    let attributes = || one("Color", value("json/plain", "1"));
    let commands = [upsert(vec![("Color", value("json/plain", "1"))]), again(attributes()), child(attributes())];
    for command in commands {
        let (cause, message) = told(command, RefusedSearchAttributes::Undefined("no Color".to_owned()));
        assert_eq!((cause, message.as_str()), (Cause::BadSearchAttributes, "BadSearchAttributes: no Color"));
    }
}

#[test]
fn attributes_of_a_wrong_type_fail_their_task() {
    let attributes = || one("Color", value("json/plain", "1"));
    let commands = [
        (upsert(vec![("Color", value("json/plain", "1"))]), "no colour"),
        (
            again(attributes()),
            "invalid SearchAttributes on ContinueAsNewWorkflowExecutionCommand: no colour. WorkflowType=Order",
        ),
        (
            child(attributes()),
            "invalid SearchAttributes on StartChildWorkflowCommand: no colour. WorkflowId=child WorkflowType=Parcel \
             Namespace=here",
        ),
    ];
    for (command, expected) in commands {
        let (cause, message) = told(command, RefusedSearchAttributes::Wrong("no colour".to_owned()));
        assert_eq!((cause, message), (Cause::BadSearchAttributes, format!("BadSearchAttributes: {expected}")));
    }
}

#[test]
fn attributes_that_weigh_too_much_end_the_run() {
    let heavy = |bytes: usize| Payload { data: vec![b'x'; bytes].into(), ..Default::default() };
    let cases = [
        (upsert(vec![("Color", heavy(2049))]), Cause::BadSearchAttributes),
        (again(one("Color", heavy(2049))), Cause::BadContinueAsNewAttributes),
        (child(one("Color", heavy(2049))), Cause::BadStartChildExecutionAttributes),
    ];
    for (command, expected) in cases {
        let mut run = Run::working();
        let reply = run.try_complete_task(vec![command]).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!(cause, expected);
        assert!(message.ends_with("search attribute Color value size 2049 exceeds size limit 2048"), "{message}");
        assert_eq!(run.state.status, Status::Terminated);
    }
}

#[test]
fn attributes_are_weighed_together_with_those_that_the_run_has() {
    let names: Vec<String> = (0..20).map(|number| format!("A{number}")).collect();
    let heavy = || Payload { data: vec![b'x'; 2048].into(), ..Default::default() };
    let fields = |names: &[String]| upsert(names.iter().map(|name| (name.as_str(), heavy())).collect());
    let mut run = Run::after(vec![fields(&names[..10])]);
    run.signal("again").unwrap();
    run.start_task();
    let reply = run.try_complete_task(vec![fields(&names[10..])]).unwrap();
    let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
    assert_eq!(cause, Cause::BadSearchAttributes);
    assert!(message.contains("total size of search attributes 4"), "{message}");
    assert_eq!(run.state.status, Status::Terminated);
}
