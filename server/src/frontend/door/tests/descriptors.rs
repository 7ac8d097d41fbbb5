//! Another reading of the descriptors than the door's own, by prost-reflect.

use std::collections::{HashMap, HashSet};

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};
use prost_types::FieldDescriptorProto;

pub(super) struct Api(DescriptorPool);

/// A field on the way from a request to a text.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The message that has the field, with a dot before it.
    pub(super) message: String,
    pub(super) number: u32,
    pub(super) field: FieldDescriptorProto,
}

impl Step {
    pub(super) fn unknown(number: u32) -> Self {
        Self { message: String::new(), number, field: FieldDescriptorProto::default() }
    }
}

impl Api {
    pub(super) fn read() -> Self {
        Self(DescriptorPool::decode(proto::DESCRIPTORS).expect("our own descriptors"))
    }

    fn get(&self, name: &str) -> MessageDescriptor {
        self.0.get_message_by_name(name.trim_start_matches('.')).expect(name)
    }

    pub(super) fn public_requests(&self) -> Vec<String> {
        let services = self.0.services().filter(|service| service.full_name().starts_with("temporal.api."));
        services
            .flat_map(|service| {
                service.methods().map(|method| format!(".{}", method.input().full_name())).collect::<Vec<_>>()
            })
            .collect()
    }

    /// All that we store, send between services, or answer.
    pub(super) fn kept_and_told(&self) -> Vec<String> {
        let own = self.0.all_messages().filter(|message| message.full_name().starts_with("everrow."));
        let answers =
            self.0.services().flat_map(|service| service.methods().map(|method| method.output()).collect::<Vec<_>>());
        own.chain(answers).map(|message| format!(".{}", message.full_name())).collect()
    }

    /// The ways to all texts and bytes of a message; no way goes through a type twice.
    pub(super) fn texts_of(&self, message: &str) -> Vec<Vec<Step>> {
        fn walk(message: &MessageDescriptor, way: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
            let name = format!(".{}", message.full_name());
            if way.iter().any(|step| step.message == name) {
                return;
            }
            for field in message.fields() {
                let step = Step {
                    message: name.clone(),
                    number: field.number(),
                    field: field.field_descriptor_proto().clone(),
                };
                way.push(step);
                if matches!(field.kind(), Kind::String | Kind::Bytes) {
                    found.push(way.clone());
                } else if let Kind::Message(inner) = field.kind() {
                    walk(&inner, way, found);
                }
                way.pop();
            }
        }
        let mut found = Vec::new();
        walk(&self.get(message), &mut Vec::new(), &mut found);
        found
    }

    /// Messages that can hold themselves, however far down.
    pub(super) fn recursive(&self) -> Vec<String> {
        let all = self.0.all_messages().map(|message| format!(".{}", message.full_name()));
        all.filter(|name| self.levels_to(name, name).is_some()).collect()
    }

    /// The least levels from a message down to another.
    pub(super) fn levels_to(&self, from: &str, to: &str) -> Option<usize> {
        let mut level = vec![self.get(from)];
        let mut seen = HashSet::new();
        for depth in 1.. {
            let inner: Vec<_> = level.iter().flat_map(inner_messages).collect();
            if inner.iter().any(|message| message.full_name() == to.trim_start_matches('.')) {
                return Some(depth);
            }
            level = inner.into_iter().filter(|message| seen.insert(message.full_name().to_owned())).collect();
            if level.is_empty() {
                return None;
            }
        }
        None
    }

    /// The most levels from a message down to another, by ways that go through no type twice.
    pub(super) fn most_levels_to(&self, from: &str, to: &str) -> Option<usize> {
        fn most(
            message: &MessageDescriptor,
            to: &str,
            way: &mut Vec<String>,
            known: &mut HashMap<String, Option<usize>>,
        ) -> Option<usize> {
            if let Some(levels) = known.get(message.full_name()) {
                return *levels;
            }
            way.push(message.full_name().to_owned());
            let mut levels = None;
            for inner in inner_messages(message) {
                let found = match inner.full_name() {
                    name if name == to => Some(1),
                    name if way.iter().any(|known| known == name) => None,
                    _ => most(&inner, to, way, known).map(|levels| levels + 1),
                };
                levels = levels.max(found);
            }
            way.pop();
            known.insert(message.full_name().to_owned(), levels);
            levels
        }
        most(&self.get(from), to.trim_start_matches('.'), &mut Vec::new(), &mut HashMap::new())
    }
}

fn inner_messages(message: &MessageDescriptor) -> Vec<MessageDescriptor> {
    message.fields().filter_map(|field| field.kind().as_message().cloned()).collect()
}
