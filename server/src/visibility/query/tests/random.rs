//! Random texts never panic, and random filters mean the same negated twice.

use cluster::fuzz::seeds;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::super::evaluate::matches;
use super::super::{parse, parse_for_schedules};
use super::given::{answer, custom, runs};
use crate::visibility::access::{PARTS_MAX, accesses};
use crate::visibility::bounds::Bounds;

const PIECES: [&str; 64] = [
    "Kw",
    "Txt",
    "KwList",
    "Num",
    "Dbl",
    "Flag",
    "At",
    "ExecutionStatus",
    "StartTime",
    "ExecutionDuration",
    "Foo",
    "`Kw`",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<>",
    "<=>",
    "IN",
    "NOT",
    "BETWEEN",
    "AND",
    "OR",
    "IS",
    "NULL",
    "STARTS_WITH",
    "LIKE",
    "(",
    ")",
    ",",
    ";",
    "+",
    "-",
    "*",
    ".",
    "!",
    "ORDER BY",
    "GROUP BY",
    "ASC",
    "DESC",
    "LIMIT",
    "HAVING",
    "'",
    "\"",
    "`",
    "\\",
    "'a'",
    "\"b\"",
    "'2024-01-02T03:04:05Z'",
    "'1h'",
    "'01:02:03'",
    "'Running'",
    "5",
    "1.5",
    "1e9",
    "0x5",
    "true",
    "false",
    "--",
    "/*",
    "*/",
    "é日\u{1F600}",
];

const SEEDS: u64 = 20_000;

#[test]
fn random_texts_are_answered_or_refused() {
    for seed in seeds(SEEDS) {
        let mut random = SmallRng::seed_from_u64(seed);
        let length = random.random_range(0..24);
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(PIECES[random.random_range(0..PIECES.len())]);
            if random.random_bool(0.8) {
                text.push(' ');
            }
        }
        // Answered or refused, it must say something of each.
        if let Err(error) = answer(&text) {
            assert!(error.starts_with("invalid query: "), "seed {seed}: {text}: {error}");
        }
        // So do schedules, and whatever can be read has a plan.
        let queries = [parse(&text, &custom()), parse_for_schedules(&text, &custom())];
        for query in queries.into_iter().flatten() {
            let n_parts = accesses(query.filter.as_ref()).iter().map(|access| access.parts.len()).sum::<usize>();
            assert!(n_parts <= PARTS_MAX * text.len().max(1), "seed {seed}: {text}: {n_parts} reads");
            let bounds = Bounds::of(query.filter.as_ref());
            assert!(bounds.statuses.len() <= 6, "seed {seed}: {text}");
        }
    }
}

/// A query that can be read, from a grammar of its own.
fn written(random: &mut SmallRng, depth: usize) -> String {
    const TESTS: [&str; 12] = [
        "Kw = 'Alpha'",
        "Kw != 'Alpha'",
        "Kw IN ('Alpha', '100%')",
        "Kw STARTS_WITH 'al'",
        "Kw BETWEEN 'a' AND 'b'",
        "Kw IS NULL",
        "Txt = 'quick dog'",
        "KwList NOT IN ('red', 'blue')",
        "Num > 1.5",
        "Dbl <= 2.5",
        "Flag = true",
        "At < '2025-01-01T00:00:00Z'",
    ];
    if depth == 0 {
        return TESTS[random.random_range(0..TESTS.len())].to_owned();
    }
    let left = written(random, depth - 1);
    match random.random_range(0..3) {
        0 => format!("NOT ({left})"),
        1 => format!("({left}) AND ({})", written(random, depth - 1)),
        _ => format!("({left}) OR ({})", written(random, depth - 1)),
    }
}

#[test]
fn a_filter_and_its_negation_share_no_run() {
    for seed in seeds(2_000) {
        let mut random = SmallRng::seed_from_u64(seed);
        let query = written(&mut random, 4);
        let filter = parse(&query, &custom()).expect("it can be read").filter.expect("it has a filter");
        let negated = filter.clone().negated();
        assert_eq!(negated.clone().negated(), filter, "seed {seed}: {query}");
        for run in runs() {
            let holds = |filter| matches(filter, &|attribute| run.value(attribute));
            assert!(!(holds(&filter) && holds(&negated)), "seed {seed}: {query}: {}", run.workflow_id);
        }
    }
}
