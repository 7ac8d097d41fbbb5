//! The description names every route, and describes all that it names.

use prost_reflect::DescriptorPool;

use super::*;

fn described() -> Value {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).unwrap();
    document(&RouteTable::new(&pool))
}

/// All that is said under a key, anywhere.
fn said<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| if name == key { value.as_str().into_iter().collect() } else { said(value, key) })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| said(item, key)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn everything_that_is_referred_to_is_described() {
    let document = described();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.values().all(Value::is_object));
    let references = said(&document, "$ref");
    assert!(references.len() > 500, "{} references", references.len());
    for reference in references {
        let name = reference.strip_prefix("#/components/schemas/").unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let document = described();
    let mut names = said(&document["paths"], "operationId");
    let n_operations = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_operations);
    assert!(n_operations > 100, "{n_operations} operations");
}

#[test]
fn a_call_is_described_with_its_path_its_parameters_and_its_body() {
    let document = described();
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/workflows/{execution.workflow_id}/history"]["get"];
    let names = said(&path["parameters"], "name");
    assert_eq!(names[..2], ["namespace", "execution.workflow_id"]);
    assert!(names.contains(&"execution.runId") && names.contains(&"maximumPageSize"), "{names:?}");
    assert!(!names.contains(&"execution.workflowId"), "{names:?}");
    assert!(path.get("requestBody").is_none());
    let path = &document["paths"]["/api/v1/namespaces/{namespace}/workflows/{workflow_id}"]["post"];
    let body = path["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().unwrap();
    assert!(body.ends_with(".StartWorkflowExecutionRequest"), "{body}");
}
