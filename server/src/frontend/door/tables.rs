//! The door's tables, built once from the descriptors: one rule per field of each message type that a request may hold.

use std::collections::HashMap;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use super::rules::{self, Bound, Context};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TableId(u16);

/// Check of a length-delimited field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A field number that this server's descriptors lack.
    Unknown,
    /// Any length: `rules` says why.
    Plain,
    /// Packed numbers.
    Packed,
    Text {
        bytes_max: u32,
        is_list: bool,
    },
    Message(TableId),
    /// A message in a list.
    Item(TableId),
    /// A message that is an entry of a map.
    Entry(TableId),
    /// A `google.protobuf.Any`.
    Packaged,
}

pub(super) struct Table {
    /// Indexed by field number.
    rules: Box<[Rule]>,
    names: Box<[(u32, Box<str>)]>,
    /// Approximate size in memory, without heap allocations.
    item_bytes: usize,
}

pub(super) struct Tables {
    all: Vec<Table>,
    /// By the type's short name, which several packages may share.
    requests: HashMap<String, Vec<(String, TableId)>>,
    /// Types that are unpacked from an `Any`, by full name.
    packed: Vec<(String, TableId)>,
    any: TableId,
}

const ANY: &str = ".google.protobuf.Any";
/// Workers' update messages arrive in an `Any`.
const PACKED: [&str; 4] = [
    ".temporal.api.update.v1.Acceptance",
    ".temporal.api.update.v1.Rejection",
    ".temporal.api.update.v1.Response",
    ".temporal.api.update.v1.Request",
];

impl Tables {
    /// # Panics
    ///
    /// If our own descriptors cannot be read, which a test rules out.
    pub(super) fn of_descriptors() -> Self {
        let files = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("our own descriptors are complete");
        let types = Types::of(&files);
        let mut builder = Builder { types: &types, ids: HashMap::new(), all: Vec::new() };
        let any = builder.table(ANY, Context::Request);
        let packed = PACKED.map(|name| (name[1..].to_owned(), builder.table(name, Context::Request)));
        let mut requests: HashMap<String, Vec<(String, TableId)>> = HashMap::new();
        for file in &files.file {
            for method in file.service.iter().flat_map(|service| &service.method) {
                let name = method.input_type();
                let Some((package, short)) = name.trim_start_matches('.').rsplit_once('.') else { continue };
                let table = builder.table(name, Context::Request);
                requests.entry(short.to_owned()).or_default().push((package.to_owned(), table));
            }
        }
        let all = builder.all.into_iter().map(|table| table.expect("every table that is begun is made")).collect();
        Self { all, requests, packed: packed.into(), any }
    }

    pub(super) fn request(&self, (package, name): (&str, &str)) -> Option<TableId> {
        self.requests.get(name)?.iter().find(|(known, _)| known == package).map(|(_, table)| *table)
    }

    pub(super) fn rule(&self, table: TableId, field: u32) -> Rule {
        let rules = &self.all[usize::from(table.0)].rules;
        rules.get(field as usize).copied().unwrap_or(Rule::Unknown)
    }

    pub(super) fn item_bytes(&self, table: TableId) -> usize {
        self.all[usize::from(table.0)].item_bytes
    }

    pub(super) fn any(&self) -> TableId {
        self.any
    }

    pub(super) fn packed_in(&self, type_url: &[u8]) -> Option<TableId> {
        let name = type_url.rsplit(|byte| *byte == b'/').next()?;
        self.packed.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, table)| *table)
    }

    /// The name in the API's descriptors.
    pub(super) fn field_name(&self, table: TableId, field: u32) -> &str {
        let names = &self.all[usize::from(table.0)].names;
        names.iter().find(|(number, _)| *number == field).map_or("field", |(_, name)| name)
    }
}

/// All message types, by their full names.
struct Types<'a>(HashMap<String, &'a DescriptorProto>);

impl<'a> Types<'a> {
    fn of(files: &'a FileDescriptorSet) -> Self {
        fn add<'a>(types: &mut HashMap<String, &'a DescriptorProto>, parent: &str, message: &'a DescriptorProto) {
            let name = format!("{parent}.{}", message.name());
            message.nested_type.iter().for_each(|nested| add(types, &name, nested));
            types.insert(name, message);
        }
        let mut types = HashMap::new();
        for file in &files.file {
            let package = format!(".{}", file.package());
            file.message_type.iter().for_each(|message| add(&mut types, &package, message));
        }
        Self(types)
    }

    fn get(&self, name: &str) -> &'a DescriptorProto {
        self.0.get(name).unwrap_or_else(|| panic!("our own descriptors have {name}"))
    }

    /// Approximate size of a message's Rust type. `outer` are the enclosing types: a recursive field is a pointer.
    fn bytes(&self, name: &str, outer: &mut Vec<String>) -> usize {
        const TEXT: usize = 24;
        const BYTES: usize = 32;
        const MAP: usize = 48;
        const POINTER: usize = 8;
        if outer.iter().any(|known| known == name) {
            return POINTER;
        }
        outer.push(name.to_owned());
        let message = self.get(name);
        // A oneof counts as its widest field.
        let mut choices = vec![0; message.oneof_decl.len()];
        let mut bytes = 0;
        for field in &message.field {
            let size = match (field.label(), field.r#type()) {
                (Label::Repeated, _) if is_map(self, field) => MAP,
                (Label::Repeated, _) | (_, Type::String) => TEXT,
                (_, Type::Bytes) => BYTES,
                (_, Type::Message) => self.bytes(field.type_name(), outer) + POINTER,
                _ => 8,
            };
            match field.oneof_index.and_then(|index| choices.get_mut(usize::try_from(index).ok()?)) {
                Some(choice) => *choice = size.max(*choice),
                None => bytes += size,
            }
        }
        outer.pop();
        bytes + choices.iter().map(|choice| choice + POINTER).sum::<usize>()
    }
}

fn is_map(types: &Types<'_>, field: &FieldDescriptorProto) -> bool {
    field.r#type() == Type::Message
        && types.get(field.type_name()).options.as_ref().is_some_and(|options| options.map_entry())
}

struct Builder<'a> {
    types: &'a Types<'a>,
    ids: HashMap<(String, Context), TableId>,
    /// `None` while under construction: a type may contain itself.
    all: Vec<Option<Table>>,
}

impl Builder<'_> {
    fn table(&mut self, name: &str, around: Context) -> TableId {
        let context = around.inside(name);
        if let Some(id) = self.ids.get(&(name.to_owned(), context)) {
            return *id;
        }
        let id = TableId(u16::try_from(self.all.len()).expect("there are some hundreds of types"));
        self.ids.insert((name.to_owned(), context), id);
        self.all.push(None);
        let message = self.types.get(name);
        let length = message.field.iter().map(FieldDescriptorProto::number).max().unwrap_or(0) + 1;
        let mut rules = vec![Rule::Unknown; usize::try_from(length).expect("field numbers are positive")];
        let mut names = Vec::new();
        for field in &message.field {
            let number = u32::try_from(field.number()).expect("field numbers are positive");
            rules[number as usize] = self.rule(name, field, context);
            names.push((number, field.name().into()));
        }
        let item_bytes = self.types.bytes(name, &mut Vec::new());
        let (rules, names) = (rules.into(), names.into());
        self.all[usize::from(id.0)] = Some(Table { rules, names, item_bytes });
        id
    }

    fn rule(&mut self, message: &str, field: &FieldDescriptorProto, context: Context) -> Rule {
        let is_list = field.label() == Label::Repeated;
        if matches!(field.r#type(), Type::String | Type::Bytes) {
            return match rules::bound(message, field, context) {
                Bound::Bytes(bytes_max) => Rule::Text { bytes_max, is_list },
                Bound::Elsewhere => Rule::Plain,
            };
        }
        if field.r#type() != Type::Message {
            return if is_list { Rule::Packed } else { Rule::Plain };
        }
        if field.type_name() == ANY {
            return Rule::Packaged;
        }
        let inner = self.table(field.type_name(), context);
        match is_list {
            true if is_map(self.types, field) => Rule::Entry(inner),
            true => Rule::Item(inner),
            false => Rule::Message(inner),
        }
    }
}
