//! What is wrong with a query, in words: a query, and the error without its first words.

use super::given::answer;

/// As the reference says.
const MALFORMED: &[(&str, &str)] = &[
    ("Kw IN 'Alpha'", "malformed SQL query: syntax error at position 41 near 'Alpha'"),
    ("Kw IN ()", "malformed SQL query: syntax error at position 36"),
    ("Kw = 'a' 'b'", "malformed SQL query: syntax error at position 40 near 'b'"),
    ("Num = --3", "malformed SQL query: syntax error at position 37"),
    ("LIMIT 5", "malformed SQL query: syntax error at position 33 near 'limit'"),
    ("ORDER BY StartTime GROUP BY ExecutionStatus", "malformed SQL query: syntax error at position 46 near 'group'"),
    ("Kw == 'Alpha'", "malformed SQL query: syntax error at position 33"),
    ("Kw = 'a' AND", "malformed SQL query: syntax error at position 40"),
    ("AND Kw = 'a'", "malformed SQL query: syntax error at position 31 near 'and'"),
    ("Kw =", "malformed SQL query: syntax error at position 32"),
    ("(Kw = 'Alpha'", "malformed SQL query: syntax error at position 41"),
    ("Kw = 'Alpha')", "malformed SQL query: syntax error at position 41"),
    ("Kw = 'Alpha'; Num = 5", "malformed SQL query: syntax error at position 45 near 'Num'"),
    ("Kw = 'unterminated", "malformed SQL query: syntax error at position 46 near 'unterminated'"),
    (r#"Kw = "unterminated"#, "malformed SQL query: syntax error at position 46 near 'unterminated'"),
    ("`Kw = 'x'", "malformed SQL query: syntax error at position 37 near 'Kw = 'x''"),
    ("Kw = #x", "malformed SQL query: syntax error at position 35"),
    ("Kw IS NOT DISTINCT FROM 'a'", "malformed SQL query: syntax error at position 46 near 'distinct'"),
    ("Kw BETWEEN 'a'", "malformed SQL query: syntax error at position 42"),
    ("Kw BETWEEN 'a' AND", "malformed SQL query: syntax error at position 46"),
    ("Kw BETWEEN 'a' OR 'b'", "malformed SQL query: syntax error at position 45 near 'or'"),
    ("Kw NOT = 'a'", "malformed SQL query: syntax error at position 36"),
    ("Kw NOT NULL", "malformed SQL query: syntax error at position 39 near 'null'"),
    ("Kw ISNULL", "malformed SQL query: syntax error at position 37 near 'ISNULL'"),
    ("Kw IN ('a',)", "malformed SQL query: syntax error at position 40"),
    ("Kw = N'a'", "malformed SQL query: syntax error at position 37 near 'a'"),
    ("Kw = _utf8'Alpha'", "malformed SQL query: syntax error at position 45 near 'Alpha'"),
    ("select * from x", "malformed SQL query: syntax error at position 34 near 'select'"),
    ("group = 'x'", "malformed SQL query: syntax error at position 33 near 'group'"),
    ("where Kw = 'Alpha'", "malformed SQL query: syntax error at position 33 near 'where'"),
    ("Flag = NOT true", "malformed SQL query: syntax error at position 38 near 'not'"),
    ("Num = 5 = true", "malformed SQL query: syntax error at position 37"),
    ("Kw = 'Alpha' XOR Num = 5", "malformed SQL query: syntax error at position 44 near 'xor'"),
    ("Num = 1.2.3", "malformed SQL query: syntax error at position 39 near '.3'"),
    ("Num = 5abc", "malformed SQL query: syntax error at position 35 near '5'"),
    ("Num=5AND Kw='Alpha'", "malformed SQL query: syntax error at position 33 near '5'"),
    ("Kw NOT", "malformed SQL query: syntax error at position 34"),
    ("Kw starts with 'a'", "malformed SQL query: syntax error at position 37 near 'starts'"),
    ("Kw = 'a''", "malformed SQL query: syntax error at position 37 near 'a''"),
    ("Kw $ 'x'", "malformed SQL query: syntax error at position 32 near '$'"),
    ("`` = 'x'", "malformed SQL query: syntax error at position 30"),
    ("Kw IN ('a') IN ('b')", "malformed SQL query: syntax error at position 42 near 'in'"),
    ("Num = 1_000", "malformed SQL query: syntax error at position 35 near '1'"),
    ("Kw = 'x' LIMIT", "malformed SQL query: syntax error at position 42"),
    ("Kw = 'x' GROUP BY", "malformed SQL query: syntax error at position 45"),
    ("Kw = 'x' ORDER StartTime", "malformed SQL query: syntax error at position 52 near 'StartTime'"),
    ("ORDER BY", "malformed SQL query: syntax error at position 30"),
    ("GROUP BY", "malformed SQL query: syntax error at position 30"),
    ("ORDER BY StartTime,", "malformed SQL query: syntax error at position 41"),
    ("ORDER BY StartTime foo", "malformed SQL query: syntax error at position 44 near 'foo'"),
    ("ORDER BY StartTime DESC ASC", "malformed SQL query: syntax error at position 49 near 'asc'"),
    ("Kw IS 5", "malformed SQL query: syntax error at position 35 near '5'"),
    ("Kw IS NOT 5", "malformed SQL query: syntax error at position 39 near '5'"),
    ("Kw = 'Alpha' AND (Foo = 'x' OR", "malformed SQL query: syntax error at position 58"),
    ("()", "malformed SQL query: syntax error at position 30"),
];

/// As the reference says.
const MEANINGLESS: &[(&str, &str)] = &[
    (
        "Kw = `Alpha`",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "Alpha"?)"#,
    ),
    (
        "Kw = Alpha",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "Alpha"?)"#,
    ),
    ("Kw = ('Alpha')", "invalid expression: unexpected value type *sqlparser.ParenExpr"),
    (
        "Kw STARTS_WITH 5",
        "invalid expression: invalid value type for search attribute Kw of type Keyword: 5 (type: int64)",
    ),
    ("Kw STARTS_WITH ('a')", "invalid expression: unexpected value type *sqlparser.ParenExpr"),
    ("Kw = NULL", "invalid expression: unexpected value type *sqlparser.NullVal"),
    ("Kw IS TRUE", "invalid expression: 'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'"),
    ("Kw IS NOT TRUE", "invalid expression: 'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'"),
    ("Kw = 5", "invalid expression: invalid value type for search attribute Kw of type Keyword: 5 (type: int64)"),
    ("Kw = true", "invalid expression: invalid value type for search attribute Kw of type Keyword: true (type: bool)"),
    ("Txt = ''", "invalid expression: no tokens found filtering on Text type search attribute Txt"),
    ("Txt = '  '", "invalid expression: no tokens found filtering on Text type search attribute Txt"),
    (
        "Txt IN ('quick')",
        "operation is not supported: operator 'IN' not supported for Text type search attribute 'Txt'",
    ),
    ("Txt > 'a'", "operation is not supported: operator '>' not supported for Text type search attribute 'Txt'"),
    (
        "Txt STARTS_WITH 'qu'",
        "operation is not supported: operator 'STARTS_WITH' not supported for Text type search attribute 'Txt'",
    ),
    ("Txt BETWEEN 'a' AND 'b'", "invalid expression: cannot do range condition on search attribute 'Txt' of type Text"),
    ("Txt = 5", "invalid expression: invalid value type for search attribute Txt of type Text: 5 (type: int64)"),
    (
        "KwList > 'a'",
        "operation is not supported: operator '>' not supported for KeywordList type search attribute 'KwList'",
    ),
    (
        "KwList BETWEEN 'a' AND 'b'",
        "invalid expression: cannot do range condition on search attribute 'KwList' of type KeywordList",
    ),
    (
        "KwList STARTS_WITH 'r'",
        "operation is not supported: operator 'STARTS_WITH' not supported for KeywordList type search attribute 'KwList'",
    ),
    ("Num = '5'", r#"invalid expression: invalid value type for search attribute Num of type Int: "5" (type: string)"#),
    (
        r#"Num = "5""#,
        r#"invalid expression: invalid value type for search attribute Num of type Int: "5" (type: string)"#,
    ),
    ("Num = 0x5", r#"invalid expression: unable to parse value "0x5""#),
    (
        "Num IN (5, '5')",
        r#"invalid expression: invalid value type for search attribute Num of type Int: "5" (type: string)"#,
    ),
    (
        "Num STARTS_WITH 5",
        "operation is not supported: operator 'STARTS_WITH' not supported for Int type search attribute 'Num'",
    ),
    ("Num = true", "invalid expression: invalid value type for search attribute Num of type Int: true (type: bool)"),
    (
        "Dbl = 'x'",
        r#"invalid expression: invalid value type for search attribute Dbl of type Double: "x" (type: string)"#,
    ),
    (
        "Flag = 'true'",
        r#"invalid expression: invalid value type for search attribute Flag of type Bool: "true" (type: string)"#,
    ),
    ("Flag = 1", "invalid expression: invalid value type for search attribute Flag of type Bool: 1 (type: int64)"),
    (
        "Flag BETWEEN true AND false",
        "invalid expression: cannot do range condition on search attribute 'Flag' of type Bool",
    ),
    ("Flag", "invalid expression: incomplete expression"),
    ("Flag AND Num = 5", "invalid expression: incomplete expression"),
    ("NOT Flag", "invalid expression: incomplete expression"),
    ("At = '1704164645000000000'", "invalid expression: unable to parse datetime '1704164645000000000'"),
    ("At > '2024-01-02'", "invalid expression: unable to parse datetime '2024-01-02'"),
    ("At > '2024-01-02 03:04:05'", "invalid expression: unable to parse datetime '2024-01-02 03:04:05'"),
    (
        "At = 1.5",
        "invalid expression: invalid value type for search attribute At of type Datetime: 1.5 (type: float64)",
    ),
    ("At STARTS_WITH '2024'", "invalid expression: unable to parse datetime '2024'"),
    (r#"ExecutionStatus = "running""#, "invalid expression: invalid ExecutionStatus value 'running'"),
    ("ExecutionStatus = 9", "invalid expression: invalid ExecutionStatus value 9"),
    ("ExecutionStatus = '1'", "invalid expression: invalid ExecutionStatus value '1'"),
    ("ExecutionStatus = 1.5", "invalid expression: unexpected value type float64 for search attribute ExecutionStatus"),
    (
        "ExecutionStatus = true",
        "invalid expression: invalid value type for search attribute ExecutionStatus of type Keyword: true (type: bool)",
    ),
    ("ExecutionStatus = 'Foo'", "invalid expression: invalid ExecutionStatus value 'Foo'"),
    ("ExecutionStatus STARTS_WITH 'Run'", "invalid expression: invalid ExecutionStatus value 'Run'"),
    (
        "ExecutionStatus STARTS_WITH 'Running'",
        r#"invalid expression: right-hand side of "starts_with" operator must be a literal string (got: Running)"#,
    ),
    (
        "ExecutionDuration > 'abc'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: abc",
    ),
    ("ExecutionDuration > ''", "invalid expression: invalid duration value for search attribute ExecutionDuration: "),
    (
        "ExecutionDuration > 1.5",
        "invalid expression: unexpected value type float64 for search attribute ExecutionDuration",
    ),
    (
        "ExecutionDuration = true",
        "invalid expression: invalid value type for search attribute ExecutionDuration of type Int: true (type: bool)",
    ),
    (
        "ExecutionDuration STARTS_WITH '1s'",
        "operation is not supported: operator 'STARTS_WITH' not supported for Int type search attribute 'ExecutionDuration'",
    ),
    ("StartTime < 'x'", "invalid expression: unable to parse datetime 'x'"),
    ("temporalWorkflowId = 'a'", "invalid search attribute: temporalWorkflowId"),
    ("workflowid = 'a'", "invalid search attribute: workflowid"),
    ("Foo = 'a'", "invalid search attribute: Foo"),
    ("TemporalKw = 'Alpha'", "invalid search attribute: TemporalKw"),
    ("NamespaceId = 'x'", "invalid search attribute: NamespaceId"),
    ("Memo = 'x'", "invalid search attribute: Memo"),
    ("VisibilityTaskKey = 'x'", "invalid search attribute: VisibilityTaskKey"),
    ("Temporal = 'x'", "invalid search attribute: Temporal"),
    ("ActivityId = 'x'", "invalid search attribute: ActivityId"),
    ("ORDER BY Txt", "operation is not supported: unable to sort by search attribute type Text"),
    ("ORDER BY Foo", "invalid search attribute: Foo"),
    ("ORDER BY 1", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    ("ORDER BY 'x'", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    ("Kw = 'Alpha' LIMIT 5", "operation is not supported: 'LIMIT' clause"),
    (
        "Kw = 'Alpha' GROUP BY Kw",
        "operation is not supported: 'GROUP BY' clause is not supported for search attribute Kw",
    ),
    (
        "Kw = 'Alpha' GROUP BY ExecutionStatus, Kw",
        "operation is not supported: 'GROUP BY' clause supports only a single field",
    ),
    ("GROUP BY Foo", "invalid search attribute: Foo"),
    ("GROUP BY 1", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    (
        "Kw LIKE 'a%'",
        "operation is not supported: operator 'LIKE' not supported for Keyword type search attribute 'Kw'",
    ),
    (
        "Kw NOT LIKE 'a%'",
        "operation is not supported: operator 'NOT LIKE' not supported for Keyword type search attribute 'Kw'",
    ),
    (
        "Kw REGEXP 'a'",
        "operation is not supported: operator 'REGEXP' not supported for Keyword type search attribute 'Kw'",
    ),
    ("Kw <=> 'a'", "operation is not supported: operator '<=>' not supported for Keyword type search attribute 'Kw'"),
    ("'Alpha' = Kw", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    ("1 = 1", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    (
        "Kw = Kw2",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "Kw2"?)"#,
    ),
    ("Num = (5)", "invalid expression: unexpected value type *sqlparser.ParenExpr"),
    ("Kw = lower('X')", "operation is not supported: nested func"),
    ("lower(Kw) = 'x'", "invalid expression: must be a column name but was *sqlparser.FuncExpr"),
    ("lower(Kw)", "operation is not supported: function expression"),
    ("Kw", "invalid expression: incomplete expression"),
    ("!(Kw = 'Alpha')", "operation is not supported: expression of type *sqlparser.UnaryExpr"),
    ("! Kw = 'Alpha'", "invalid expression: must be a column name but was *sqlparser.UnaryExpr"),
    ("`a.b` = 'x'", "invalid search attribute: a.b"),
    (
        "Kw = @x",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "@x"?)"#,
    ),
    ("status = 'x'", "invalid search attribute: status"),
    ("`group` = 'x'", "invalid search attribute: group"),
    ("Flag IS TRUE", "invalid expression: 'IS' operator can only be used as 'IS NULL' or 'IS NOT NULL'"),
    ("Num = 1e", r#"invalid expression: unable to parse value "1e""#),
    ("Kw = 'Alpha' AND (Num = 5 OR (Num = 6 AND Flag = true)) ORDER BY Foo", "invalid search attribute: Foo"),
    (
        "Kw STARTS_WITH Alpha",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "Alpha"?)"#,
    ),
    ("(Kw, Num) = ('a', 1)", "invalid expression: must be a column name but was sqlparser.ValTuple"),
    ("(Kw) = 'Alpha'", "invalid expression: must be a column name but was *sqlparser.ParenExpr"),
    ("Kw = 'Alpha' AND TRUE", "operation is not supported: expression of type sqlparser.BoolVal"),
    ("TRUE", "operation is not supported: expression of type sqlparser.BoolVal"),
    ("NULL", "operation is not supported: expression of type *sqlparser.NullVal"),
    ("5", "operation is not supported: expression of type *sqlparser.SQLVal"),
    ("'x'", "operation is not supported: expression of type *sqlparser.SQLVal"),
    ("Dbl > 1e400", r#"invalid expression: unable to parse value "1e400""#),
    ("Kw IN (NULL)", "invalid expression: unexpected value type *sqlparser.NullVal"),
    (
        "Kw IN ('a', true)",
        "invalid expression: invalid value type for search attribute Kw of type Keyword: true (type: bool)",
    ),
    ("Flag IN (1)", "invalid expression: invalid value type for search attribute Flag of type Bool: 1 (type: int64)"),
    ("a.b = 'x'", "invalid search attribute: a.b"),
    (
        "Kw = a.b",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "a.b"?)"#,
    ),
    ("StartTime > '2020-01-01T00:00:00'", "invalid expression: unable to parse datetime '2020-01-01T00:00:00'"),
    ("StartTime > '2020-01-01t00:00:00z'", "invalid expression: unable to parse datetime '2020-01-01t00:00:00z'"),
    ("StartTime > '2020-01-01T24:00:00Z'", "invalid expression: unable to parse datetime '2020-01-01T24:00:00Z'"),
    ("StartTime > '2020-02-30T00:00:00Z'", "invalid expression: unable to parse datetime '2020-02-30T00:00:00Z'"),
    ("StartTime > '2020-01-01T00:00:60Z'", "invalid expression: unable to parse datetime '2020-01-01T00:00:60Z'"),
    ("StartTime > '2020-1-01T00:00:00Z'", "invalid expression: unable to parse datetime '2020-1-01T00:00:00Z'"),
    (
        "StartTime = true",
        "invalid expression: invalid value type for search attribute StartTime of type Datetime: true (type: bool)",
    ),
    ("StartTime IN ('x', 5)", "invalid expression: unable to parse datetime 'x'"),
    ("ExecutionStatus = -1", "invalid expression: invalid ExecutionStatus value -1"),
    ("Kw = 'Alpha'ORDER BY Foo", "invalid search attribute: Foo"),
    ("Kw like 5", "invalid expression: invalid value type for search attribute Kw of type Keyword: 5 (type: int64)"),
    ("Num like 5", "operation is not supported: operator 'LIKE' not supported for Int type search attribute 'Num'"),
    (
        "Num not like 5",
        "operation is not supported: operator 'NOT LIKE' not supported for Int type search attribute 'Num'",
    ),
    (
        "Num regexp '5'",
        r#"invalid expression: invalid value type for search attribute Num of type Int: "5" (type: string)"#,
    ),
    (
        "Flag starts_with 'x'",
        r#"invalid expression: invalid value type for search attribute Flag of type Bool: "x" (type: string)"#,
    ),
    (
        "KwList like 'r'",
        "operation is not supported: operator 'LIKE' not supported for KeywordList type search attribute 'KwList'",
    ),
    (
        "Txt not starts_with 'x'",
        "operation is not supported: operator 'NOT STARTS_WITH' not supported for Text type search attribute 'Txt'",
    ),
    (
        "Kw not regexp 'x'",
        "operation is not supported: operator 'NOT REGEXP' not supported for Keyword type search attribute 'Kw'",
    ),
    (
        "Kw rlike 'x'",
        "operation is not supported: operator 'REGEXP' not supported for Keyword type search attribute 'Kw'",
    ),
    ("Txt = true", "invalid expression: invalid value type for search attribute Txt of type Text: true (type: bool)"),
    (
        "KwList = 5",
        "invalid expression: invalid value type for search attribute KwList of type KeywordList: 5 (type: int64)",
    ),
    (
        "KwList IN (5)",
        "invalid expression: invalid value type for search attribute KwList of type KeywordList: 5 (type: int64)",
    ),
    ("Txt != ''", "invalid expression: no tokens found filtering on Text type search attribute Txt"),
    (
        "ExecutionDuration = '1h2x'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 1h2x",
    ),
    (
        "ExecutionDuration = '1w'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 1w",
    ),
    (
        "ExecutionDuration = '-1:00:00'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: -1:00:00",
    ),
    (
        "ExecutionDuration = '00:60:00'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 00:60:00",
    ),
    (
        "ExecutionDuration = '1:00'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 1:00",
    ),
    (
        "ExecutionDuration = '99999999999999999999'",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 99999999999999999999",
    ),
    (
        "ExecutionDuration = '1s '",
        "invalid expression: invalid duration value for search attribute ExecutionDuration: 1s ",
    ),
    ("ORDER BY lower(Kw)", "invalid expression: must be a column name but was *sqlparser.FuncExpr"),
    ("ORDER BY (Kw)", "invalid expression: must be a column name but was *sqlparser.ParenExpr"),
    ("'x' IS NULL", "invalid expression: must be a column name but was *sqlparser.SQLVal"),
    ("Kw IN (('a'))", "invalid expression: unexpected value type *sqlparser.ParenExpr"),
];

/// SQL that the reference reads before it refuses it, or fails at; here it stops at what is no query.
const OWN: &[(&str, &str)] = &[
    ("Kw = ('Alpha', 'b')", "invalid expression: unexpected value type sqlparser.ValTuple"),
    ("Keyword01 = 'a'", "invalid search attribute: Keyword01"),
    ("GROUP BY ExecutionStatus HAVING Num = 1", "operation is not supported: 'HAVING' clause"),
    ("Num = 1 + 2", "malformed SQL query: syntax error at position 37"),
    ("Num + 1 = 5", "malformed SQL query: syntax error at position 33"),
    ("Num IN (1+2)", "malformed SQL query: syntax error at position 38"),
    ("EXISTS (select 1)", "malformed SQL query: syntax error at position 34 near 'exists'"),
    ("Kw IN (select 1)", "malformed SQL query: syntax error at position 41 near 'select'"),
    ("default.Kw = 'Alpha'", "invalid search attribute: default.Kw"),
    ("Kw = :v", "malformed SQL query: syntax error at position 34 near ':'"),
    ("Kw = ?", "malformed SQL query: syntax error at position 34 near '?'"),
    ("Kw ^ 'a'", "malformed SQL query: syntax error at position 32"),
    ("Kw = 'Al' + 'pha'", "malformed SQL query: syntax error at position 39"),
    ("Kw = b'1'", "malformed SQL query: syntax error at position 37 near '1'"),
    ("Kw = x'41'", "malformed SQL query: syntax error at position 38 near '41'"),
    ("Kw = 'Alpha' COLLATE utf8", "malformed SQL query: syntax error at position 48 near 'COLLATE'"),
    (
        "Kw = CURRENT_TIMESTAMP",
        r#"operation is not supported: column name on the right side of comparison expression (did you forget to quote "CURRENT_TIMESTAMP"?)"#,
    ),
    ("Kw = 'Alpha' union select 1", "malformed SQL query: syntax error at position 46 near 'union'"),
    ("key = 'x'", "invalid search attribute: key"),
    ("interval = 'x'", "invalid search attribute: interval"),
    ("Kw = 'Alpha' FOR UPDATE", "malformed SQL query: syntax error at position 44 near 'for'"),
    ("Num DIV 2 = 1", "malformed SQL query: syntax error at position 35 near 'DIV'"),
    ("CASE WHEN Kw = 'a' THEN 1 END", "malformed SQL query: syntax error at position 32 near 'case'"),
    ("Num = -(3)", "invalid expression: unexpected value type *sqlparser.UnaryExpr"),
    ("Ä = 'x'", "malformed SQL query: syntax error at position 30 near 'Ä'"),
    ("ExecutionStatus = 4294967297", "invalid expression: invalid ExecutionStatus value 4294967297"),
    ("Kw = 'x' HAVING Kw = 'x'", "operation is not supported: 'HAVING' clause"),
    ("Kw IN ('a', ('b','c'))", "invalid expression: unexpected value type sqlparser.ValTuple"),
];

fn check(table: &[(&str, &str)]) {
    for (query, expected) in table {
        assert_eq!(answer(query), Err(format!("invalid query: {expected}")), "{query}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    check(MALFORMED);
}

#[test]
fn what_means_nothing_is_refused_with_the_reason() {
    check(MEANINGLESS);
}

#[test]
fn other_sql_is_refused_with_its_place() {
    check(OWN);
}

#[test]
fn parentheses_nest_so_deep_and_no_deeper() {
    let nested = |depth: usize| answer(&format!("{}Kw = 'Alpha'{}", "(".repeat(depth), ")".repeat(depth)));
    assert_eq!(nested(199).as_deref(), Ok("a"));
    let refused = "invalid query: malformed SQL query: max nesting level reached at position 228".to_owned();
    assert_eq!(nested(200), Err(refused.clone()));
    assert_eq!(nested(100_000), Err(refused));
}

#[test]
fn a_query_has_a_length_that_it_may_not_exceed() {
    let list = |count: usize| answer(&format!("Kw IN ({})", vec!["'0'"; count].join(",")));
    assert_eq!(list(4_000).as_deref(), Ok(""));
    assert!(list(100_000).is_err_and(|error| error.contains("query of 400007 bytes, more than 262144")));
}

/// Bounds of our own: what a query asks of each run, and how many columns order it.
#[test]
fn a_query_has_bounds() {
    let order_by = |n: usize| format!("ORDER BY {}", vec!["StartTime"; n].join(", "));
    assert!(answer(&order_by(8)).is_ok());
    let refusal = answer(&order_by(9)).expect_err("too many columns");
    assert!(refusal.ends_with("'ORDER BY' clause with 9 columns, more than 8"), "{refusal}");
    assert!(answer(&order_by(20_000)).is_err());
    let among = |n: usize| format!("Num IN ({})", vec!["1"; n].join(", "));
    assert!(answer(&among(4000)).is_ok());
    let refusal = answer(&among(5000)).expect_err("too many values");
    assert!(refusal.ends_with("query of more than 4096 conditions and values"), "{refusal}");
    let terms = |n: usize| vec!["Flag = true"; n].join(" OR ");
    assert!(answer(&terms(4000)).is_ok());
    assert!(answer(&terms(5000)).is_err());
    let words = |n: usize| format!("Txt = '{}'", "word ".repeat(n));
    assert!(answer(&words(1000)).is_ok());
    assert!(answer(&words(20_000)).is_err(), "each word is looked for in every run");
}
