//! A value that runs are searched by: its type, its order, and the bytes that keep the order in an index row.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use proto::temporal::api::enums::v1::IndexedValueType;
use workflow::Timestamp;

/// Type of a search attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueType {
    /// Compared whole.
    Keyword,
    /// Searched by word.
    Text,
    /// Several keywords; a comparison holds if it holds for any keyword.
    KeywordList,
    Int,
    Double,
    Bool,
    Datetime,
}

/// A value of one of these types. "Not set" is the `None` of an `Option`.
#[derive(Debug, Clone)]
pub enum Value {
    Keyword(String),
    Text(String),
    KeywordList(Vec<String>),
    Int(i64),
    /// Never "not a number": neither a payload nor a query can write it.
    Double(f64),
    Bool(bool),
    Datetime(Timestamp),
}

/// The sign bit of a number that is kept as unsigned bytes: flipped, negative numbers come first.
const SIGN: u64 = 1 << 63;

impl ValueType {
    /// In the order of the public enum.
    pub const ALL: [Self; 7] =
        [Self::Text, Self::Keyword, Self::Int, Self::Double, Self::Bool, Self::Datetime, Self::KeywordList];

    /// As the API, the CLI and the `type` metadata of payloads write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keyword => "Keyword",
            Self::Text => "Text",
            Self::KeywordList => "KeywordList",
            Self::Int => "Int",
            Self::Double => "Double",
            Self::Bool => "Bool",
            Self::Datetime => "Datetime",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value_type| value_type.name() == name)
    }

    /// `None` if the type is unspecified.
    #[must_use]
    pub fn from_proto(value_type: IndexedValueType) -> Option<Self> {
        match value_type {
            IndexedValueType::Unspecified => None,
            IndexedValueType::Text => Some(Self::Text),
            IndexedValueType::Keyword => Some(Self::Keyword),
            IndexedValueType::Int => Some(Self::Int),
            IndexedValueType::Double => Some(Self::Double),
            IndexedValueType::Bool => Some(Self::Bool),
            IndexedValueType::Datetime => Some(Self::Datetime),
            IndexedValueType::KeywordList => Some(Self::KeywordList),
        }
    }

    #[must_use]
    pub fn to_proto(self) -> IndexedValueType {
        match self {
            Self::Keyword => IndexedValueType::Keyword,
            Self::Text => IndexedValueType::Text,
            Self::KeywordList => IndexedValueType::KeywordList,
            Self::Int => IndexedValueType::Int,
            Self::Double => IndexedValueType::Double,
            Self::Bool => IndexedValueType::Bool,
            Self::Datetime => IndexedValueType::Datetime,
        }
    }
}

impl Value {
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Keyword(_) => ValueType::Keyword,
            Self::Text(_) => ValueType::Text,
            Self::KeywordList(_) => ValueType::KeywordList,
            Self::Int(_) => ValueType::Int,
            Self::Double(_) => ValueType::Double,
            Self::Bool(_) => ValueType::Bool,
            Self::Datetime(_) => ValueType::Datetime,
        }
    }

    /// The keys under which an index finds the value, each once: one for a simple value, one for each keyword of a
    /// list, one for each word of a text. Bytes compare as the values of one type do, so an index is of one attribute
    /// *and one type*: the key does not hold the type.
    #[must_use]
    pub fn index_keys(&self) -> BTreeSet<Vec<u8>> {
        match self {
            Self::KeywordList(keywords) => keywords.iter().map(|keyword| keyword.clone().into_bytes()).collect(),
            Self::Text(text) => words(text).map(String::into_bytes).collect(),
            Self::Keyword(keyword) => BTreeSet::from([keyword.clone().into_bytes()]),
            Self::Int(number) => BTreeSet::from([ordered(*number)]),
            Self::Datetime(moment) => BTreeSet::from([ordered(moment.0)]),
            Self::Double(number) => BTreeSet::from([ordered_double(*number)]),
            Self::Bool(flag) => BTreeSet::from([vec![u8::from(*flag)]]),
        }
    }
}

/// The words of a text: sequences of letters and digits, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The phrases of a text query, any of which matches: each a sequence of adjacent words. Blanks separate phrases, so a
/// plain word is a phrase of one, and `well-known` is one of two.
#[must_use]
pub fn phrases(query: &str) -> Vec<Vec<String>> {
    query.split(' ').map(|chunk| words(chunk).collect::<Vec<_>>()).filter(|phrase| !phrase.is_empty()).collect()
}

fn ordered(number: i64) -> Vec<u8> {
    (number.cast_unsigned() ^ SIGN).to_be_bytes().to_vec()
}

fn ordered_double(number: f64) -> Vec<u8> {
    let bits = without_negative_zero(number).to_bits();
    // The larger a negative number's bits, the smaller it is.
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
    ordered.to_be_bytes().to_vec()
}

fn without_negative_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// Values of one type by their meaning; of two types by the type, so that the order is total.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Keyword(own), Self::Keyword(other)) | (Self::Text(own), Self::Text(other)) => own.cmp(other),
            (Self::KeywordList(own), Self::KeywordList(other)) => own.cmp(other),
            (Self::Int(own), Self::Int(other)) => own.cmp(other),
            (Self::Double(own), Self::Double(other)) => {
                without_negative_zero(*own).total_cmp(&without_negative_zero(*other))
            }
            (Self::Bool(own), Self::Bool(other)) => own.cmp(other),
            (Self::Datetime(own), Self::Datetime(other)) => own.cmp(other),
            (own, other) => own.value_type().cmp(&other.value_type()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests;
