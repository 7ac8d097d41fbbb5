//! Search attributes: defined by operators, set by clients and workers, refused in the words of the reference.

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{Command, UpsertWorkflowSearchAttributesCommandAttributes};
use proto::temporal::api::common::v1::{Payload, SearchAttributes};
use proto::temporal::api::enums::v1::{CommandType, IndexedValueType};
use proto::temporal::api::operatorservice::v1 as operator;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::by_hand::ByHand;
use crate::given::{Given, NAMESPACE, a_node, a_node_in, refused};
use crate::paging::until_listed;

fn attributes(fields: &[(&str, &str)]) -> SearchAttributes {
    let field = |(name, data): &(&str, &str)| {
        let metadata = [("encoding".to_owned(), "json/plain".into())].into();
        ((*name).to_owned(), Payload { metadata, data: (*data).to_owned().into(), ..Payload::default() })
    };
    SearchAttributes { indexed_fields: fields.iter().map(field).collect() }
}

fn upsert(fields: &[(&str, &str)]) -> Command {
    let upsert = UpsertWorkflowSearchAttributesCommandAttributes { search_attributes: Some(attributes(fields)) };
    Command {
        command_type: CommandType::UpsertWorkflowSearchAttributes.into(),
        attributes: Some(Attributes::UpsertWorkflowSearchAttributesCommandAttributes(upsert)),
        ..Default::default()
    }
}

async fn add(given: &Given, namespace: &str, types: &[(&str, IndexedValueType)]) -> Result<(), Status> {
    let search_attributes = types.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).into())).collect();
    let request = operator::AddSearchAttributesRequest { search_attributes, namespace: namespace.into() };
    given.operator().add_search_attributes(request).await.map(|_| ())
}

async fn remove(given: &Given, namespace: &str, names: &[&str]) -> Result<(), Status> {
    let search_attributes = names.iter().map(|name| (*name).to_owned()).collect();
    let request = operator::RemoveSearchAttributesRequest { search_attributes, namespace: namespace.into() };
    given.operator().remove_search_attributes(request).await.map(|_| ())
}

/// By name: the type of each custom attribute.
async fn custom(given: &Given) -> Vec<(String, i32)> {
    let request = operator::ListSearchAttributesRequest { namespace: NAMESPACE.into() };
    let listed = given.operator().list_search_attributes(request).await.expect("the list is granted").into_inner();
    assert_eq!(listed.system_attributes.len(), 33);
    let mut custom: Vec<_> = listed.custom_attributes.into_iter().collect();
    custom.sort_unstable();
    custom
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_are_defined_and_removed() {
    use IndexedValueType::{Bool, Int, Keyword};
    let given = a_node().await;
    add(&given, NAMESPACE, &[("Customer", Keyword), ("Amount", Int)]).await.unwrap();
    // What is there stays, even of another type.
    add(&given, NAMESPACE, &[("Customer", Int)]).await.unwrap();
    let defined = vec![("Amount".to_owned(), Int.into()), ("Customer".to_owned(), Keyword.into())];
    assert_eq!(custom(&given).await, defined);
    let given = a_node_in(given.stop().await).await;
    assert_eq!(custom(&given).await, defined);

    let request = public::DescribeNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let config = given.client().describe_namespace(request).await.unwrap().into_inner().config.unwrap();
    assert_eq!(config.custom_search_attribute_aliases["Keyword01"], "Customer");
    assert_eq!(config.custom_search_attribute_aliases["Int01"], "Amount");

    let flags: Vec<String> = (0..30).map(|number| format!("Flag{number}")).collect();
    let many: Vec<_> = flags.iter().map(|name| (name.as_str(), Bool)).collect();
    add(&given, NAMESPACE, &many).await.unwrap();
    assert_eq!(custom(&given).await.len(), 32, "there are as many as one likes");
    let names: Vec<_> = flags.iter().map(String::as_str).chain(["Customer", "NeverThere"]).collect();
    remove(&given, NAMESPACE, &names).await.unwrap();
    assert_eq!(custom(&given).await, [("Amount".to_owned(), Int.into())]);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_refused_in_the_words_of_the_reference() {
    use IndexedValueType::{Keyword, Unspecified};
    let given = a_node().await;
    let add_cases = [
        (NAMESPACE, vec![], Code::InvalidArgument, "SearchAttributes are not set on request."),
        ("", vec![("X", Keyword)], Code::InvalidArgument, "Namespace is not set on request."),
        ("nope", vec![("X", Keyword)], Code::NotFound, "Namespace nope is not found."),
        (
            NAMESPACE,
            vec![("WorkflowId", Keyword)],
            Code::InvalidArgument,
            "Search attribute WorkflowId is reserved by system.",
        ),
        (
            NAMESPACE,
            vec![("TemporalX", Keyword)],
            Code::InvalidArgument,
            "Search attribute TemporalX is reserved by system.",
        ),
        (
            NAMESPACE,
            vec![("X", Unspecified)],
            Code::InvalidArgument,
            "Unable to create search attributes: cannot have more than 0 search attribute of type Unspecified.",
        ),
    ];
    for (namespace, types, code, message) in add_cases {
        refused(add(&given, namespace, &types).await, code, message);
    }
    let remove_cases = [
        (NAMESPACE, vec![], Code::InvalidArgument, "SearchAttributes are not set on request."),
        ("", vec!["X"], Code::InvalidArgument, "Namespace is not set on request."),
        ("nope", vec!["X"], Code::NotFound, "Namespace nope is not found."),
        (
            NAMESPACE,
            vec!["BuildIds"],
            Code::InvalidArgument,
            "Unable to remove non-custom search attributes: BuildIds.",
        ),
    ];
    for (namespace, names, code, message) in remove_cases {
        refused(remove(&given, namespace, &names).await, code, message);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_have_attributes_of_their_types() {
    let given = a_node().await;
    add(&given, NAMESPACE, &[("Customer", IndexedValueType::Keyword)]).await.unwrap();
    let run = ByHand::new(&given, "typed");
    let start = |fields: &[(&str, &str)]| public::StartWorkflowExecutionRequest {
        search_attributes: Some(attributes(fields)),
        ..run.start_request()
    };
    let refusals = [
        (("Color", "1"), "Namespace default has no mapping defined for search attribute Color"),
        (("Customer", "1"), "invalid value for search attribute Customer of type Keyword: 1"),
        (("RunId", "1"), "RunId attribute can't be set in SearchAttributes"),
    ];
    for (field, message) in refusals {
        let answer = run.client().start_workflow_execution(start(&[field])).await;
        refused(answer, Code::InvalidArgument, message);
    }
    run.client().start_workflow_execution(start(&[("Customer", r#""ann""#)])).await.unwrap();

    let task = run.poll().await;
    let wrong = vec![upsert(&[("Customer", "2")])];
    let answer =
        run.respond(public::RespondWorkflowTaskCompletedRequest { commands: wrong, ..run.completion(task.task_token) });
    let message = "BadSearchAttributes: invalid value for search attribute Customer of type Keyword: 2";
    refused(answer.await, Code::InvalidArgument, message);
    let task = run.poll().await;
    run.complete(task.task_token, vec![upsert(&[("BatcherUser", r#""bob""#)])]).await;

    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(run.execution()) };
    let described = run.client().describe_workflow_execution(request).await.unwrap().into_inner();
    let fields = described.workflow_execution_info.unwrap().search_attributes.unwrap().indexed_fields;
    for name in ["Customer", "BatcherUser"] {
        assert_eq!(fields[name].metadata["type"].as_ref(), b"Keyword", "{name}");
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_attributes_of_the_namespace() {
    use IndexedValueType::{Int, Keyword, Text};
    let given = a_node().await;
    add(&given, NAMESPACE, &[("Customer", Keyword), ("Amount", Int), ("Note", Text)]).await.unwrap();
    for (name, customer, amount) in
        [("ann-1", r#""ann""#, "5"), ("ann-2", r#""ann""#, "50"), ("bob-1", r#""bob""#, "500")]
    {
        let run = ByHand::new(&given, name);
        let fields = [("Customer", customer), ("Amount", amount), ("Note", r#""Fragile, with care""#)];
        let start = public::StartWorkflowExecutionRequest {
            search_attributes: Some(attributes(&fields)),
            ..run.start_request()
        };
        run.client().start_workflow_execution(start).await.unwrap();
    }
    until_listed(&given, "Note = 'fragile' AND Amount > 0", &["bob-1", "ann-2", "ann-1"]).await;
    until_listed(&given, "Customer = 'ann'", &["ann-2", "ann-1"]).await;
    until_listed(&given, "Customer STARTS_WITH 'b' OR Amount BETWEEN 1 AND 10", &["bob-1", "ann-1"]).await;
    until_listed(&given, "Customer = 'ann' ORDER BY Amount", &["ann-1", "ann-2"]).await;
    given.stop().await;
}
