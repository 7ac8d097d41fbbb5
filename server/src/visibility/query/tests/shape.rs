//! What a filter looks like to a planner: flat, without negations, its values of the attributes' types.

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use persistence::stores::visibility::value::{Value, ValueType};

use super::super::filter::{Condition, Direction, Filter, OrderBy, Test};
use super::super::parse;
use super::given::custom;

fn indexed(name: &str, value_type: ValueType) -> Attribute {
    Attribute::Indexed { name: name.to_owned(), value_type }
}

fn num(condition: Condition) -> Filter {
    Filter::Test(Test { attribute: indexed("Num", ValueType::Int), condition })
}

fn kw(condition: Condition) -> Filter {
    Filter::Test(Test { attribute: indexed("Kw", ValueType::Keyword), condition })
}

fn keyword(text: &str) -> Value {
    Value::Keyword(text.to_owned())
}

/// The filter without the test that hides the server's own runs.
fn filter(query: &str) -> Filter {
    let hidden = Filter::Test(Test { attribute: Attribute::namespace_division(), condition: Condition::IsNull });
    let filter = parse(query, &custom()).expect(query).filter.expect("a filter");
    match filter {
        Filter::And(mut terms) if terms[0] == hidden => {
            terms.remove(0);
            Filter::all(terms)
        }
        other @ (Filter::And(_) | Filter::Or(_) | Filter::Test(_)) => panic!("{query} shows hidden runs: {other:?}"),
    }
}

#[test]
fn negations_are_pushed_into_the_tests() {
    let int = Value::Int;
    let expected = Filter::And(vec![
        kw(Condition::NotEqual(keyword("a"))),
        num(Condition::GreaterOrEqual(int(1))),
        Filter::Or(vec![num(Condition::NotBetween(int(1), int(2))), kw(Condition::IsNull)]),
    ]);
    let query = "NOT (Kw = 'a' OR Num < 1 OR (Num BETWEEN 1 AND 2 AND Kw IS NOT NULL))";
    assert_eq!(filter(query), expected);
    assert_eq!(filter("NOT Kw STARTS_WITH 'a'"), kw(Condition::NotStartsWith("a".to_owned())));
    assert_eq!(filter("NOT Kw NOT IN ('a')"), kw(Condition::In(vec![keyword("a")])));
}

#[test]
fn connectives_are_flat() {
    let one = |number| num(Condition::Equal(Value::Int(number)));
    assert_eq!(filter("Num = 1 AND (Num = 2 AND (Num = 3))"), Filter::And(vec![one(1), one(2), one(3)]));
    assert_eq!(filter("(Num = 1 OR Num = 2) OR Num = 3"), Filter::Or(vec![one(1), one(2), one(3)]));
    let expected = Filter::Or(vec![one(1), Filter::And(vec![one(2), one(3)])]);
    assert_eq!(filter("Num = 1 OR Num = 2 AND Num = 3"), expected);
}

#[test]
fn integers_are_compared_with_integers() {
    let int = Value::Int;
    let never = Condition::In(vec![]);
    let cases = [
        ("Num < 1.5", Condition::Less(int(2))),
        ("Num <= 1.5", Condition::LessOrEqual(int(1))),
        ("Num > -1.5", Condition::Greater(int(-2))),
        ("Num >= -1.5", Condition::GreaterOrEqual(int(-1))),
        ("Num = 2.0", Condition::Equal(int(2))),
        ("Num != 2.0", Condition::NotEqual(int(2))),
        ("Num = 1.5", never.clone()),
        ("Num != 1.5", Condition::IsNotNull),
        ("Num < 1e30", Condition::IsNotNull),
        ("Num <= -1e30", never.clone()),
        ("Num > 1e30", never.clone()),
        ("Num >= -1e30", Condition::IsNotNull),
        ("Num IN (1, 1.5, 2.0, 1e30)", Condition::In(vec![int(1), int(2)])),
        ("Num BETWEEN 0.5 AND 2.5", Condition::Between(int(1), int(2))),
        ("Num BETWEEN -1e30 AND 2.5", Condition::LessOrEqual(int(2))),
        ("Num BETWEEN 0.5 AND 1e30", Condition::GreaterOrEqual(int(1))),
        ("Num BETWEEN -1e30 AND 1e30", Condition::IsNotNull),
        ("Num BETWEEN 1e30 AND 1e31", never),
        ("Num = 9223372036854775807", Condition::Equal(int(i64::MAX))),
        ("Num = -9223372036854775808", Condition::Equal(int(i64::MIN))),
    ];
    for (query, expected) in cases {
        assert_eq!(filter(query), num(expected), "{query}");
    }
}

#[test]
fn statuses_are_ordered_by_their_numbers() {
    let status = |condition| {
        let attribute = Attribute::System(SystemAttribute::ExecutionStatus);
        Filter::Test(Test { attribute, condition })
    };
    let among = |names: &[&str]| status(Condition::In(names.iter().map(|name| keyword(name)).collect()));
    assert_eq!(filter("ExecutionStatus < 'Completed'"), among(&["Unspecified", "Running"]));
    assert_eq!(filter("ExecutionStatus >= 'TimedOut'"), among(&["TimedOut", "Paused"]));
    assert_eq!(filter("ExecutionStatus BETWEEN 2 AND 4"), among(&["Completed", "Failed", "Canceled"]));
    let terminated = status(Condition::Equal(keyword("Terminated")));
    for written in ["5", "'Terminated'", "'WORKFLOW_EXECUTION_STATUS_TERMINATED'"] {
        assert_eq!(filter(&format!("ExecutionStatus = {written}")), terminated);
    }
}

#[test]
fn durations_are_nanoseconds() {
    const SECOND: i64 = 1_000_000_000;
    let durations = [
        ("5", 5),
        ("'5'", 5),
        ("'1s'", SECOND),
        ("'-1.5h'", -5400 * SECOND),
        ("'1h2m3s4ms5us6ns'", 3723 * SECOND + 4_005_006),
        ("'5µs'", 5000),
        ("'+.5s'", SECOND / 2),
        ("'1.5d'", 36 * 3600 * SECOND),
        ("'1d2h'", 26 * 3600 * SECOND),
        ("'01:02:03'", 3723 * SECOND),
        ("'100:00:00'", 360_000 * SECOND),
        ("'1:00:00.5'", 3600 * SECOND),
    ];
    for (written, nanos) in durations {
        let attribute = Attribute::System(SystemAttribute::ExecutionDuration);
        let expected = Filter::Test(Test { attribute, condition: Condition::Equal(Value::Int(nanos)) });
        assert_eq!(filter(&format!("ExecutionDuration = {written}")), expected, "{written}");
    }
}

#[test]
fn only_a_query_that_names_the_division_shows_hidden_runs() {
    let parsed = |query| parse(query, &custom()).expect(query).filter;
    let division = |condition| Filter::Test(Test { attribute: Attribute::namespace_division(), condition });
    assert_eq!(parsed(""), Some(division(Condition::IsNull)));
    assert_eq!(parsed("ORDER BY StartTime"), Some(division(Condition::IsNull)));
    assert_eq!(parsed("GROUP BY TemporalNamespaceDivision"), None);
    let scheduler = Condition::Equal(keyword("TemporalScheduler"));
    assert_eq!(parsed("TemporalNamespaceDivision = 'TemporalScheduler'"), Some(division(scheduler.clone())));
    assert_eq!(parsed("NamespaceDivision = 'TemporalScheduler'"), Some(division(scheduler)));
}

#[test]
fn an_order_has_several_attributes() {
    let query = parse("Num = 1 ORDER BY Kw DESC, StartTime, CloseTime ASC", &custom()).expect("a query");
    let by = |attribute, direction| OrderBy { attribute, direction };
    let expected = [
        by(indexed("Kw", ValueType::Keyword), Direction::Descending),
        by(Attribute::System(SystemAttribute::StartTime), Direction::Ascending),
        by(Attribute::System(SystemAttribute::CloseTime), Direction::Ascending),
    ];
    assert_eq!(query.order_by, expected);
    assert_eq!(query.group_by, None);
}

#[test]
fn a_count_is_grouped_by_one_attribute() {
    let query = parse("Num = 1 GROUP BY ExecutionStatus", &custom()).expect("a query");
    assert_eq!(query.group_by, Some(Attribute::System(SystemAttribute::ExecutionStatus)));
}

#[test]
fn an_attribute_of_the_namespace_hides_the_alias_of_the_same_name() {
    let own = [("ScheduleId".to_owned(), ValueType::Int)].into_iter().collect();
    let query = parse("ScheduleId = 5", &own).expect("a query");
    let test = Test { attribute: indexed("ScheduleId", ValueType::Int), condition: Condition::Equal(Value::Int(5)) };
    assert!(matches!(query.filter, Some(Filter::And(terms)) if terms[1] == Filter::Test(test)));
}
