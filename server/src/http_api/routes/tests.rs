//! Every path of the API, and paths that are none.

use super::*;

fn pool() -> DescriptorPool {
    DescriptorPool::decode(proto::DESCRIPTORS).unwrap()
}

impl Route {
    /// A path of this route, with `value` wherever a field stands.
    fn example(&self, value: &str) -> (Method, String) {
        let segments = self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => format!("/{literal}"),
            Segment::Field(_) => format!("/{value}"),
        });
        (self.verb.clone(), segments.collect())
    }
}

#[test]
fn every_annotated_route_leads_to_its_own_rpc() {
    let table = RouteTable::new(&pool());
    for route in &table.routes {
        let (verb, path) = route.example("x");
        let found = table.find(&verb, &path).unwrap_or_else(|_| panic!("{verb} {path} leads nowhere"));
        assert_eq!(found.route.rpc, route.rpc, "{verb} {path}");
        assert!(found.fields.iter().all(|(_, value)| value == "x"), "{verb} {path}");
    }
}

#[test]
fn every_rpc_with_an_annotation_has_its_routes() {
    let pool = pool();
    let table = RouteTable::new(&pool);
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let annotated: Vec<_> = methods.filter(|method| annotation(&pool, method).is_some()).collect();
    assert!(annotated.len() > 100, "only {} RPCs are annotated", annotated.len());
    for method in annotated {
        let rpc = format!("/{}/{}", method.parent_service().full_name(), method.name());
        // The old path, and the one below /api/v1.
        assert!(table.routes.iter().filter(|route| route.rpc.as_str() == rpc).count() >= 2, "{rpc}");
    }
}

#[test]
fn every_field_of_a_path_is_one_of_its_request() {
    for route in RouteTable::new(&pool()).routes {
        for segment in &route.segments {
            let Segment::Field(path) = segment else { continue };
            let mut message = Some(route.input.clone());
            for name in path.split('.') {
                let field = message.and_then(|message| message.get_field_by_name(name));
                let field = field.unwrap_or_else(|| panic!("{} has no {path}", route.input.full_name()));
                message = field.kind().as_message().cloned();
            }
        }
    }
}

#[test]
fn an_unknown_path_is_distinguished_from_a_wrong_verb() {
    let table = RouteTable::new(&pool());
    for path in ["/nothing", "/", "", "/api/v1", "/api/v1/namespaces/a/workflows/w/"] {
        assert_eq!(table.find(&Method::GET, path).err(), Some(NotFound::Path), "{path}");
    }
    assert_eq!(table.find(&Method::PUT, "/api/v1/system-info").err(), Some(NotFound::Verb));
}

#[test]
fn a_part_of_a_path_may_hold_anything_once_it_is_escaped() {
    let table = RouteTable::new(&pool());
    let found = table.find(&Method::GET, "/api/v1/namespaces/a%20b/workflows/one%2Ftwo%3F%C3%A9").ok().unwrap();
    let expected =
        [("namespace", "a b"), ("execution.workflow_id", "one/two?é")].map(|(of, is)| (of.to_owned(), is.to_owned()));
    assert_eq!(found.fields, expected);
    assert_eq!(table.find(&Method::GET, "/api/v1/namespaces/%FF").err(), Some(NotFound::Path));
}
