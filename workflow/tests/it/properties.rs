//! Search attributes, memo and markers.

use std::collections::HashMap;

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{
    Command, ModifyWorkflowPropertiesCommandAttributes, UpsertWorkflowSearchAttributesCommandAttributes,
};
use proto::temporal::api::common::v1::{Memo, Payload, SearchAttributes, WorkerVersionStamp};
use proto::temporal::api::enums::v1::{CommandType, WorkflowTaskFailedCause};
use workflow::Reply;

use crate::run::{Run, marker, plain_start};

pub(crate) fn value(encoding: &'static str, data: &'static str) -> Payload {
    let metadata = HashMap::from([("encoding".to_owned(), encoding.into())]);
    Payload { metadata, data: data.into(), ..Default::default() }
}

pub(crate) fn upsert(fields: Vec<(&str, Payload)>) -> Command {
    let indexed_fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let attributes = UpsertWorkflowSearchAttributesCommandAttributes {
        search_attributes: Some(SearchAttributes { indexed_fields }),
    };
    Command {
        command_type: CommandType::UpsertWorkflowSearchAttributes.into(),
        attributes: Some(Attributes::UpsertWorkflowSearchAttributesCommandAttributes(attributes)),
        ..Default::default()
    }
}

fn modify(fields: Vec<(&str, Payload)>) -> Command {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let attributes = ModifyWorkflowPropertiesCommandAttributes { upserted_memo: Some(Memo { fields }) };
    Command {
        command_type: CommandType::ModifyWorkflowProperties.into(),
        attributes: Some(Attributes::ModifyWorkflowPropertiesCommandAttributes(attributes)),
        ..Default::default()
    }
}

#[test]
fn a_workflow_changes_what_is_known_of_it() {
    let json = |data| value("json/plain", data);
    let mut start = plain_start();
    start.memo = Some(Memo {
        fields: HashMap::from([("note".to_owned(), json("1")), ("gone".to_owned(), value("binary/null", ""))]),
    });
    let mut run = Run::started_as(start);
    assert_eq!(run.state.memo.fields.len(), 1, "a null is not kept");
    run.work(vec![
        upsert(vec![("Size", json("3")), ("Color", json("\"red\""))]),
        modify(vec![("note", value("binary/null", "")), ("other", json("2"))]),
        upsert(vec![("Color", json("[]"))]),
    ]);
    let expected = ["UpsertWorkflowSearchAttributes", "WorkflowPropertiesModified", "UpsertWorkflowSearchAttributes"];
    assert_eq!(run.history_from(5), expected);
    let mut names: Vec<&String> = run.state.search_attributes.indexed_fields.keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["BuildIds", "Size"]);
    let names: Vec<&String> = run.state.memo.fields.keys().collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn a_run_is_found_by_the_versions_of_its_workers() {
    let cases = [
        (None, "", r#"["unversioned"]"#),
        (Some("one"), "", r#"["unversioned","unversioned:one"]"#),
        (Some(""), "sum", r#"["unversioned","unversioned:one"]"#),
        (Some("two"), "sum", r#"["unversioned","unversioned:one","unversioned:two"]"#),
        (Some("one"), "", r#"["unversioned","unversioned:one","unversioned:two"]"#),
    ];
    let mut run = Run::started();
    for (build_id, checksum, expected) in cases {
        run.start_task();
        let stamp = |build_id: &str| WorkerVersionStamp { build_id: build_id.to_owned(), use_versioning: false };
        let completion = workflow::CompleteWorkflowTask {
            worker_version: build_id.map(stamp),
            binary_checksum: checksum.to_owned(),
            ..run.completion(Vec::new())
        };
        run.input(workflow::Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        assert_eq!(run.state.search_attributes.indexed_fields["BuildIds"].data, expected);
        run.signal("").unwrap();
    }
    let checksums = &run.state.search_attributes.indexed_fields["BinaryChecksums"];
    assert_eq!(checksums.data, r#"["sum","sum"]"#);
    assert_eq!(checksums.metadata["type"], "KeywordList");
}

#[test]
fn the_oldest_versions_make_room_for_new_ones() {
    let mut run = Run::started();
    for n in 0..40 {
        run.start_task();
        let build_id = format!("{n:060}");
        let completion = workflow::CompleteWorkflowTask {
            worker_version: Some(WorkerVersionStamp { build_id, use_versioning: false }),
            ..run.completion(Vec::new())
        };
        run.input(workflow::Input::CompleteWorkflowTask(Box::new(completion))).unwrap();
        run.signal("").unwrap();
    }
    let data = &run.state.search_attributes.indexed_fields["BuildIds"].data;
    let build_ids = String::from_utf8(data.to_vec()).unwrap();
    assert!(data.len() <= 2048 && build_ids.starts_with(r#"["unversioned","unversioned:0"#), "{build_ids}");
    assert!(build_ids.ends_with(r#"39"]"#), "the newest is there");
}

#[test]
fn bad_properties_fail_their_task() {
    use WorkflowTaskFailedCause as Cause;
    let cases = [
        (
            upsert(Vec::new()),
            Cause::BadSearchAttributes,
            "BadSearchAttributes: IndexedFields is not set on UpsertWorkflowSearchAttributesCommand.",
        ),
        (
            modify(Vec::new()),
            Cause::BadModifyWorkflowPropertiesAttributes,
            "BadModifyWorkflowPropertiesAttributes: UpsertedMemo.Fields is not set on ModifyWorkflowPropertiesCommand.",
        ),
        (
            marker(""),
            Cause::BadRecordMarkerAttributes,
            "BadRecordMarkerAttributes: MarkerName is not set on RecordMarkerCommand.",
        ),
    ];
    for (command, expected, expected_message) in cases {
        let mut run = Run::working();
        let reply = run.try_complete_task(vec![command]).unwrap();
        let Reply::BadCommand { cause, message } = reply else { panic!("unexpected {reply:?}") };
        assert_eq!((cause, message.as_str()), (expected, expected_message));
    }
}
