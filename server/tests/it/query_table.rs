//! Five thousand runs and some two hundred queries: what lists answer, page by page, against what a naive look at all runs
//! gives; and what they read in a large namespace, counted in rows. On whatever engine it is handed.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cluster::env::Env;
use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use cluster::search_attributes::custom::CustomAttributes;
use cluster::search_attributes::payload;
use cluster::segments::Segments;
use persistence::counted::Counted;
use persistence::engine::Engine;
use persistence::stores::Stores;
use persistence::stores::visibility::record::{Close, Record, Term};
use persistence::stores::visibility::value::{Value, ValueType};
use persistence::stores::visibility::{Change, Known, Put, Segment};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus as Status;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use server::peers::Peers;
use server::visibility::list::{Among, ListRequest};
use server::visibility::query::filter::{Direction, Query};
use server::visibility::query::{self, evaluate};
use server::visibility::service::{Parts, Service};
use uuid::Uuid;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

/// 2026-01-01.
const BEGINNING: i64 = 1_767_225_600_000_000_000;
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;
const N_DAYS: i64 = 4;
const CLOSED: [Status; 6] =
    [Status::Completed, Status::Completed, Status::Failed, Status::Canceled, Status::Terminated, Status::TimedOut];

fn custom() -> CustomAttributes {
    let attributes = [
        ("Kw", ValueType::Keyword),
        ("Num", ValueType::Int),
        ("Dbl", ValueType::Double),
        ("Flag", ValueType::Bool),
        ("At", ValueType::Datetime),
        ("Txt", ValueType::Text),
        ("KwList", ValueType::KeywordList),
    ];
    attributes.into_iter().map(|(name, value_type)| (name.to_owned(), value_type)).collect()
}

/// A run, with its search attributes as they are before anything encodes them.
struct Run {
    record: Record,
    attributes: Vec<(&'static str, Value)>,
}

/// The segments of a day: runs that start or close then are in it.
fn segment_of(moment: i64) -> i64 {
    let day = (moment - BEGINNING).div_euclid(DAY);
    ((BEGINNING + day * DAY) / 1_000_000) << 20 | 7
}

fn runs(n: u32, namespace_id: NamespaceId) -> Vec<Run> {
    let mut random = SmallRng::seed_from_u64(11);
    let n_runs = n;
    (0..n_runs).map(|n| run((n, n_runs), namespace_id, &mut random)).collect()
}

fn run((n, n_runs): (u32, u32), namespace_id: NamespaceId, random: &mut SmallRng) -> Run {
    // On whole tens of seconds: many start, and close, at the same moment.
    let started_at = BEGINNING + random.random_range(0..(N_DAYS - 1) * 8640) * 10 * SECOND;
    let closed_at = started_at + random.random_range(0..6000) * 10 * SECOND;
    let is_open = random.random_range(0..20) == 0;
    let status = if is_open { Status::Running } else { CLOSED[random.random_range(0..CLOSED.len())] };
    let attributes = attributes((n, n_runs), random);
    let encode = |(name, value): &(&'static str, Value)| {
        let attribute = Attribute::Indexed { name: (*name).to_owned(), value_type: value.value_type() };
        ((*name).to_owned(), payload::encode(&attribute, value))
    };
    let record = Record {
        workflow_id: format!("order-{:05}", n % (n_runs / 4)).into(),
        workflow_type: format!("type-{}", random.random_range(0..7)),
        task_queue: format!("queue-{}", n % 3),
        status,
        closed: (!is_open).then(|| Close {
            at: Timestamp(closed_at),
            history_length: i64::from(n % 40),
            history_size: i64::from(n),
            state_transitions: i64::from(n % 9),
        }),
        search_attributes: proto::temporal::api::common::v1::SearchAttributes {
            indexed_fields: attributes.iter().map(encode).collect(),
        },
        listing: Listing { started_in: segment_of(started_at), closed_in: (!is_open).then(|| segment_of(closed_at)) },
        ..blank(namespace_id, run_id(started_at, random), Timestamp(started_at))
    };
    Run { record, attributes }
}

/// An open run of which nothing is known but that it started.
pub(crate) fn blank(namespace_id: NamespaceId, run_id: RunId, started_at: Timestamp) -> Record {
    Record {
        namespace_id,
        workflow_id: "".into(),
        run_id,
        workflow_type: String::new(),
        task_queue: String::new(),
        status: Status::Running,
        started_at,
        executes_at: started_at,
        closed: None,
        memo: Default::default(),
        search_attributes: Default::default(),
        parent: None,
        root: None,
        listing: Listing { started_in: 0, closed_in: None },
        version: 3,
    }
}

/// Run ids of the first day have the old format, which does not encode the start time.
fn run_id(started_at: i64, random: &mut SmallRng) -> RunId {
    if started_at < BEGINNING + DAY {
        return RunId(uuid::Builder::from_random_bytes(random.random()).into_uuid());
    }
    RunId::new(Timestamp(started_at), &random.random())
}

fn attributes((n, n_runs): (u32, u32), random: &mut SmallRng) -> Vec<(&'static str, Value)> {
    let words = ["quick", "brown", "fox", "lazy", "dog", "rare"];
    let mut all = vec![
        ("Kw", Value::Keyword(format!("kw-{}", random.random_range(0..60)))),
        ("Num", Value::Int(random.random_range(-100..100))),
        ("Dbl", Value::Double(f64::from(random.random_range(-50..50)) / 4.0)),
        ("Flag", Value::Bool(random.random())),
        ("At", Value::Datetime(Timestamp(BEGINNING + random.random_range(0..100) * DAY))),
        ("Txt", Value::Text(format!("{} {}", words[random.random_range(0..5)], words[random.random_range(0..5)]))),
        ("KwList", Value::KeywordList(vec![format!("l-{}", n % 9), format!("m-{}", n % 500)])),
    ];
    all.retain(|_| random.random_range(0..4) > 0);
    if n % (n_runs / 10) == 3 {
        all.retain(|(name, _)| *name != "Kw");
        all.push(("Kw", Value::Keyword("rare".to_owned())));
    }
    all
}

impl Run {
    fn value(&self, attribute: &Attribute) -> Option<Value> {
        let record = &self.record;
        let keyword = |text: &str| Some(Value::Keyword(text.to_owned()));
        let Attribute::System(system) = attribute else {
            return self.attributes.iter().find(|(name, _)| *name == attribute.name()).map(|(_, value)| value.clone());
        };
        match system {
            SystemAttribute::WorkflowId | SystemAttribute::RootWorkflowId => keyword(&record.workflow_id),
            SystemAttribute::RunId | SystemAttribute::RootRunId => keyword(&record.run_id.to_string()),
            SystemAttribute::WorkflowType => keyword(&record.workflow_type),
            SystemAttribute::StartTime => Some(Value::Datetime(record.started_at)),
            SystemAttribute::ExecutionTime => Some(Value::Datetime(record.executes_at)),
            SystemAttribute::CloseTime => record.closed.map(|closed| Value::Datetime(closed.at)),
            SystemAttribute::ExecutionStatus => keyword(&format!("{:?}", record.status)),
            SystemAttribute::TaskQueue => keyword(&record.task_queue),
            SystemAttribute::HistoryLength => record.closed.map(|closed| Value::Int(closed.history_length)),
            SystemAttribute::ExecutionDuration => {
                record.closed.map(|closed| Value::Int(closed.at.0 - record.executes_at.0))
            }
            SystemAttribute::StateTransitionCount => record.closed.map(|closed| Value::Int(closed.state_transitions)),
            SystemAttribute::HistorySizeBytes => record.closed.map(|closed| Value::Int(closed.history_size)),
            SystemAttribute::ParentWorkflowId | SystemAttribute::ParentRunId => None,
        }
    }

    /// The same, but found by nothing but what is rare.
    fn plain(mut self) -> Self {
        self.attributes.retain(|(_, value)| *value == Value::Keyword("rare".to_owned()));
        let attributes = &self.attributes;
        let is_kept = |name: &String| attributes.iter().any(|(kept, _)| kept == name);
        self.record.search_attributes.indexed_fields.retain(|name, _| is_kept(name));
        self
    }

    fn change(&self, known: Known) -> Change {
        let terms = self.attributes.iter().flat_map(|(name, value)| Term::of_attribute(name, value)).collect();
        Change::Put(Box::new(Put { record: self.record.clone(), terms, stale: Vec::new(), known }))
    }

    /// As it was when it began.
    fn start(&self) -> Change {
        let listing = Listing { closed_in: None, ..self.record.listing };
        let record = Record { status: Status::Running, closed: None, listing, version: 1, ..self.record.clone() };
        Change::Put(Box::new(Put { record, terms: Vec::new(), stale: Vec::new(), known: Known::Never }))
    }
}

/// Queries of every kind, each with a few values.
fn queries() -> Vec<String> {
    let moment = |seconds: i64| {
        let at: prost_types::Timestamp = Timestamp(BEGINNING + seconds * SECOND).into();
        format!("'{at}'")
    };
    let mut queries = vec![String::new(), "CloseTime IS NULL".into(), "CloseTime IS NOT NULL".into()];
    for n in 0..10 {
        let (early, late) = (moment(n * 20_000), moment(n * 20_000 + 9_000));
        queries.extend([
            format!("WorkflowId = 'order-0{:04}'", n * 100),
            format!("WorkflowId STARTS_WITH 'order-00{n}'"),
            format!("WorkflowId IN ('order-0000{n}', 'order-0100{n}', 'nobody')"),
            format!("WorkflowType = 'type-{n}'"),
            format!("WorkflowType != 'type-{n}' AND Num > {}", 90 - n),
            format!("Kw = 'kw-{n}'"),
            format!("Kw != 'kw-{n}' AND Kw STARTS_WITH 'kw-{n}'"),
            format!("Kw IN ('kw-{n}', 'rare') OR Num = {n}"),
            format!("Num BETWEEN {} AND {n}", n - 3),
            format!("Num NOT BETWEEN -90 AND {}", 90 + n),
            format!("Num > {} AND Dbl < 2.5", 80 + n),
            format!("Dbl >= {}.25 AND Flag = true", n),
            format!("StartTime >= {early} AND StartTime < {late}"),
            format!("CloseTime BETWEEN {early} AND {late} AND ExecutionStatus = 'Failed'"),
            format!("StartTime < {early} AND CloseTime > {late}"),
            format!("NOT (StartTime > {early} OR WorkflowType = 'type-{n}') AND TaskQueue = 'queue-1'"),
            format!("KwList = 'l-{n}' AND KwList = 'm-{n}'"),
            format!("KwList IN ('m-{n}', 'm-4{n}')"),
            format!("KwList NOT IN ('l-{n}', 'l-1', 'l-2', 'l-3', 'l-4', 'l-5') AND Kw = 'kw-{n}'"),
            format!("At > {} AND Kw IS NOT NULL", moment(n * 10 * 86_400)),
            format!("HistoryLength = {n} AND WorkflowType = 'type-1'"),
            format!("ExecutionDuration > '{n}h' AND Num = {n}"),
        ]);
    }
    queries.extend(
        [
            "ExecutionStatus = 'Running'",
            "ExecutionStatus != 'Completed'",
            "ExecutionStatus IN ('Failed', 'Running')",
            "ExecutionStatus = 'TimedOut' AND Flag = false",
            "Txt = 'quick'",
            "Txt = 'lazy dog'",
            "Txt != 'quick' AND Num = 5",
            "Txt = 'quick' AND Txt = 'brown' AND Kw = 'kw-3'",
            "Kw = 'rare'",
            "Kw IS NULL AND Num IS NULL AND Txt IS NULL",
            "Kw = 'rare' AND Flag = true",
            "(Kw = 'rare' AND Flag = true) OR (Num = 7 AND Dbl > 0)",
            "Kw = 'no such'",
            "RunId = '00000000-0000-4000-8000-000000000000'",
            "StateTransitionCount = 3 AND HistorySizeBytes < 400",
            "Num = 3 ORDER BY StartTime ASC",
            "ORDER BY StartTime ASC",
            "ORDER BY StartTime DESC",
            "ExecutionStatus = 'Failed' ORDER BY StartTime ASC, Kw DESC",
            "StartTime > '2026-01-02T00:00:00Z' ORDER BY StartTime ASC",
            "TaskQueue = 'queue-1' ORDER BY StartTime DESC, Num",
            "Kw = 'kw-5' ORDER BY Num DESC, StartTime",
            "WorkflowType = 'type-2' ORDER BY Kw",
            "Num > 95 ORDER BY Dbl DESC",
            "Flag = true AND Num < -95 ORDER BY CloseTime DESC",
        ]
        .map(str::to_owned),
    );
    queries
}

/// Queries for runs by their ids: those that encode the start time, and others.
fn queries_by_run_id(runs: &[Run]) -> Vec<String> {
    let mut queries = Vec::new();
    let (telling, silent): (Vec<_>, Vec<_>) =
        runs.iter().map(|run| run.record.run_id).partition(|run_id| run_id.started_within().is_some());
    for n in 0..3 {
        let (one, other, silent) = (telling[7 * n], telling[7 * n + 500], silent[5 * n]);
        queries.extend([
            format!("RunId = '{one}'"),
            format!("RunId = '{silent}'"),
            format!("RunId IN ('{one}', '{other}', 'no id')"),
            format!("RunId IN ('{one}', '{silent}') ORDER BY StartTime ASC"),
            format!("RunId = '{one}' OR WorkflowId = 'order-0000{n}'"),
            format!("RunId = '{one}' AND StartTime < '2026-01-03T00:00:00Z'"),
            format!("RunId != '{one}' AND Kw = 'rare'"),
            format!("RunId BETWEEN '{one}' AND '{one}'"),
        ]);
    }
    queries.push("RunId = 'no id'".to_owned());
    queries
}

/// The runs that a query is of, in its order, by looking at all of them.
fn naive(runs: &[Run], query: &Query) -> Vec<RunId> {
    let holds = |run: &&Run| {
        let value_of = |attribute: &Attribute| run.value(attribute).map(Cow::Owned);
        query.filter.as_ref().is_none_or(|filter| evaluate::matches(filter, &value_of))
    };
    let mut found: Vec<&Run> = runs.iter().filter(holds).collect();
    found.sort_by(|one, other| {
        for by in &query.order_by {
            let order = match (one.value(&by.attribute), other.value(&by.attribute)) {
                (Some(one), Some(other)) if by.direction == Direction::Descending => other.cmp(&one),
                (Some(one), Some(other)) => one.cmp(&other),
                (one, other) => one.is_none().cmp(&other.is_none()),
            };
            if order.is_ne() {
                return order;
            }
        }
        let usual = |run: &Run| {
            let record = &run.record;
            let closed_at = record.closed.map_or(i64::MAX, |closed| closed.at.0);
            (Reverse(closed_at), Reverse(record.started_at), record.run_id)
        };
        usual(one).cmp(&usual(other))
    });
    found.iter().map(|run| run.record.run_id).collect()
}

fn service(engine: Arc<dyn Engine>) -> (Arc<Service>, Stores) {
    let (stores, env) = (Stores::new(engine), Env::system());
    let (segments, peers) = (Segments::new(env.clone()), Peers::default());
    (Service::start(Parts { env, store: stores.visibility.clone(), segments, peers }), stores)
}

async fn fill(stores: &Stores, namespace_id: NamespaceId, runs: &[Run], known: Known) {
    for day in 0..N_DAYS {
        let begins_at = BEGINNING + day * DAY;
        let sealed_at = Some(Timestamp(begins_at + DAY));
        let announced_at = Timestamp(begins_at);
        let segment = Segment { id: segment_of(begins_at), announced_at, sealed_at, is_settled: false };
        stores.visibility.put_segment(namespace_id, segment).await.expect("a segment is written");
    }
    for group in runs.chunks(500) {
        let changes: Vec<Change> = group.iter().map(|run| run.change(known)).collect();
        stores.visibility.write(&changes).await.expect("runs are written");
    }
}

/// All pages of a list, each with no more than it may have.
async fn listed(service: &Service, namespace_id: NamespaceId, query: &str, page_size: usize) -> Vec<RunId> {
    let mut request = ListRequest {
        namespace_id,
        custom: custom(),
        among: Among::Runs,
        query: query.to_owned(),
        page_size,
        token: Default::default(),
    };
    let mut found = Vec::new();
    loop {
        let page = service.list(request.clone()).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert!(page.executions.len() <= page_size, "{query}");
        found.extend(page.executions.iter().map(|run| {
            let run_id = &run.execution.as_ref().expect("it says which").run_id;
            RunId(Uuid::parse_str(run_id).expect("a run id"))
        }));
        if page.next_page_token.is_empty() {
            return found;
        }
        request.token = page.next_page_token;
    }
}

/// The whole table.
pub(crate) async fn check(engine: Arc<dyn Engine>, n_runs: u32) {
    let namespace_id = NamespaceId(Uuid::new_v4());
    let runs = runs(n_runs, namespace_id);
    let (service, stores) = service(engine);
    fill(&stores, namespace_id, &runs, Known::Never).await;
    let mut queries = queries();
    queries.extend(queries_by_run_id(&runs));
    assert!(queries.len() >= 200, "{} queries", queries.len());
    let mut n_found = 0;
    for text in &queries {
        let query = query::parse(text, &custom()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let expected = naive(&runs, &query);
        n_found += usize::from(!expected.is_empty());
        let page_size = (expected.len() / 3).clamp(7, 1000);
        assert_eq!(listed(&service, namespace_id, text, page_size).await, expected, "{text}");
        if query.order_by.is_empty() && !text.is_empty() && !text.starts_with("ExecutionStatus") {
            let counted = service.count(namespace_id, &custom(), Among::Runs, text).await.expect("it is counted");
            assert_eq!(usize::try_from(counted.count).expect("a count"), expected.len(), "{text}");
        }
    }
    let grouped = "WorkflowType = 'type-1' GROUP BY ExecutionStatus";
    let counted = service.count(namespace_id, &custom(), Among::Runs, grouped).await.expect("it is counted");
    let names = counted.groups.iter().map(|group| String::from_utf8_lossy(&group.group_values[0].data).into_owned());
    let by_number = ["Running", "Completed", "Failed", "Canceled", "Terminated", "TimedOut"];
    assert_eq!(names.collect::<Vec<_>>(), by_number.map(|name| format!("\"{name}\"")));
    assert!(n_found * 10 > queries.len() * 7, "only {n_found} of {} queries find anything", queries.len());
}

/// Visibility writes of starts by a node that lost its shard arrive after its successor's writes of the closes.
pub(crate) async fn check_late_starts(engine: Arc<dyn Engine>) {
    let namespace_id = NamespaceId(Uuid::new_v4());
    let runs = runs(400, namespace_id);
    let (service, stores) = service(engine);
    fill(&stores, namespace_id, &runs, Known::Perhaps).await;
    let starts: Vec<Change> = runs.iter().map(Run::start).collect();
    stores.visibility.write(&starts).await.expect("they arrive");
    for text in ["", "ExecutionStatus = 'Running'", "CloseTime IS NULL", "CloseTime IS NOT NULL", "Num > 0"] {
        let query = query::parse(text, &custom()).expect("a query");
        assert_eq!(listed(&service, namespace_id, text, 1000).await, naive(&runs, &query), "{text}");
    }
}

/// What a page of a list may read.
struct Limit {
    query: String,
    runs_min: usize,
    rows_max: u64,
}

fn limits(runs: &[Run]) -> Vec<Limit> {
    let mut telling = runs.iter().map(|run| run.record.run_id).filter(|run_id| run_id.started_within().is_some());
    let [one, other] = [0, 1000].map(|n| telling.nth(n).expect("most tell when they started"));
    let limit = |query: &str, runs_min, rows_max| Limit { query: query.to_owned(), runs_min, rows_max };
    vec![
        limit("WorkflowId = 'order-00042'", 4, 200),
        limit("Kw = 'rare'", 10, 200),
        limit("WorkflowType = 'type-1' AND Kw = 'rare' AND StartTime > '2025-01-01T00:00:00Z'", 0, 200),
        limit("", 100, 300),
        limit("ExecutionStatus = 'Failed'", 100, 300),
        limit("WorkflowType = 'type-1'", 100, 3000),
        // Some eight runs started at the same moment.
        limit(&format!("RunId = '{one}'"), 1, 36),
        limit(&format!("RunId IN ('{one}', '{other}')"), 2, 60),
        limit("RunId = 'no id'", 0, 10),
        limit("ORDER BY StartTime ASC", 100, 300),
        limit("ORDER BY StartTime DESC, Kw", 100, 300),
        limit("ExecutionStatus = 'Failed' ORDER BY StartTime ASC", 100, 2000),
    ]
}

/// First pages of a hundred in a large namespace, and how they say that they are put together.
pub(crate) async fn check_costs(engine: Arc<dyn Engine>, n_runs: u32) {
    let (engine, counts) = Counted::new(engine);
    let namespace_id = NamespaceId(Uuid::new_v4());
    let (service, stores) = service(engine);
    let runs: Vec<Run> = runs(n_runs, namespace_id).into_iter().map(Run::plain).collect();
    fill(&stores, namespace_id, &runs, Known::Never).await;
    let rows_read = || counts.rows_read.load(Ordering::Relaxed);
    let limits = limits(&runs);
    for Limit { query, runs_min, rows_max } in &limits {
        let before = rows_read();
        let (page_size, token) = (100, Default::default());
        let among = Among::Runs;
        let asked = ListRequest { namespace_id, custom: custom(), among, query: query.clone(), page_size, token };
        let n_listed = service.list(asked).await.expect("it is listed").executions.len();
        let n_read = rows_read() - before;
        eprintln!("{query:?} of {n_runs} runs: {n_listed} listed, {n_read} rows read");
        assert!(n_listed >= *runs_min, "{query}: only {n_listed} runs");
        assert!(n_read <= *rows_max, "{query}: {n_read} rows read for {n_listed} runs");
    }
    let explain = async |query| service.explain(namespace_id, &custom(), query).await.expect("it is explained");
    let rare = explain("Kw = 'rare'").await;
    assert!(rare.iter().any(|line| line.ends_with("names 10")), "{rare:?}");
    assert_eq!(rare.last().map(String::as_str), Some("plan: read the records of 10 candidates, and sort them"));
    let by_id = explain(&limits[6].query).await;
    assert_eq!(by_id[by_id.len() - 2], "index StartTime, as RunId tells it (1 stretch): names 1");
    let all = explain("").await;
    assert!(all.last().is_some_and(|plan| plan.starts_with("plan: look at runs in the usual order")), "{all:?}");
}
