"""Queries of lists: what each operator finds, and what is said of a query that is wrong."""

from __future__ import annotations

from catalogue import scenario
from catalogue.lists import ATTRIBUTES, with_values
from stage import Stage

ANSWERED = (
    "Color = 'red'",
    'Color = "red"',
    "`Color` = 'red'",
    "Color != 'red'",
    "Color <> 'red'",
    "NOT Color = 'red'",
    "Color IN ('red', 'green')",
    "Color NOT IN ('red')",
    "Color > 'green'",
    "Color BETWEEN 'a' AND 'h'",
    "Color NOT BETWEEN 'a' AND 'h'",
    "Color STARTS_WITH 're'",
    "Color NOT STARTS_WITH 're'",
    "Color starts_with ''",
    "Color IS NULL",
    "Color IS NOT NULL",
    "Amount = 2",
    "Amount != 2",
    "Amount > 1 AND Amount <= 3",
    "Amount BETWEEN 2 AND 3",
    "Amount NOT BETWEEN 2 AND 3",
    "Amount IN (1, 3)",
    "Amount IS NULL",
    "Amount > 1.5",
    "Amount = -1",
    "Amount = '2'",
    "Ratio = 2",
    "Ratio >= 1.5",
    "Ratio = 5e-1",
    "Flag = true",
    "Flag = false",
    "Flag != true",
    "Flag IS NULL",
    "Tags = 'b'",
    "Tags != 'a'",
    "Tags IN ('a', 'x')",
    "Tags NOT IN ('a', 'x')",
    "Tags IS NULL",
    "Words = 'fox'",
    "Words = 'quick fox'",
    "Words != 'quick'",
    "Words IS NOT NULL",
    "Moment > '2020-06-01T00:00:00Z'",
    "Moment BETWEEN '2020-01-01T00:00:00Z' AND '2020-12-31T23:59:59+01:00'",
    "Moment < 1600000000000000000",
    "Moment IS NULL",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus = 1",
    "ExecutionStatus = 'WORKFLOW_EXECUTION_STATUS_RUNNING'",
    "ExecutionStatus IN ('Running', 'Completed')",
    "ExecutionStatus != 'Running'",
    "WorkflowType = 'golden' AND (Color = 'red' OR Amount = 2)",
    "NOT (Color = 'red' OR Amount = 2)",
    "NOT (Color = 'red' AND Amount = 1)",
    "Color = 'red' or Color = 'green' and Amount = 2",
    "CloseTime IS NULL",
    "CloseTime IS NOT NULL",
    "StartTime > '2020-01-01T00:00:00Z'",
    "StartTime <= '2020-01-01T00:00:00Z'",
    "ExecutionTime >= '2020-01-01T00:00:00Z'",
    "HistoryLength = 2",
    "HistoryLength IS NULL",
    "ExecutionDuration IS NULL",
    "ExecutionDuration > '1h'",
    "ParentWorkflowId IS NULL",
    "RootWorkflowId IS NOT NULL",
    "TaskQueue IS NOT NULL",
    "StateTransitionCount IS NULL",
    "TemporalNamespaceDivision IS NULL",
    "BuildIds IS NULL",
    "  Color   =   'red'  ",
    "Color = 'it''s'",
    "Color = 'a\\'b'",
)

ORDERS = (
    "ORDER BY StartTime",
    "ORDER BY Color",
    "ORDER BY Color DESC, Amount DESC",
    "Color = 'red' ORDER BY Amount ASC",
    "ORDER BY Words",
    "ORDER BY Nothing",
    "ORDER BY Tags",
    "ORDER BY WorkflowId DESC",
    "ORDER BY CloseTime",
    "ORDER BY",
)

MALFORMED = (
    "what is this",
    "Color",
    "Color =",
    "= 'red'",
    "Color == 'red'",
    "Color = 'red",
    "Color = red",
    "Color = 'red' AND",
    "AND Color = 'red'",
    "Color = 'red' Color = 'green'",
    "(Color = 'red'",
    "Color = 'red')",
    "()",
    "Color IN ()",
    "Color IN 'red'",
    "Color IN ('red',)",
    "Color BETWEEN 'a'",
    "Color BETWEEN 'a' AND",
    "Color IS",
    "Color IS 'red'",
    "Color IS TRUE",
    "Color IS NOT FALSE",
    "Color LIKE 're%'",
    "Color NOT LIKE 're%'",
    "Color REGEXP 're'",
    "Color <=> 'red'",
    "Color = NULL",
    "Color = (1)",
    "Color = upper('red')",
    "upper(Color) = 'red'",
    "count(*) > 1",
    "1 = 1",
    "'red' = Color",
    "true",
    "NOT true",
    "'text'",
    "1",
    "-Amount = 1",
    "Color = Words",
    "Color = 'red'; drop table executions",
    "select * from executions",
    "Color = 'red' LIMIT 1",
    "LIMIT 1",
    "Color = 'red' XOR Amount = 1",
    "Color ! 'red'",
    "Color = 'red' -- comment",
    "Color = 'red' /* comment */",
    "Color = 'red' /* comment",
    "Color = $1",
    "Color = @value",
    "Amount = 0x10",
    "Amount = 1e400",
    "Amount = 99999999999999999999",
    "Amount = 1..2",
    "Amount = 1a",
    "`` = 'red'",
    "a.b = 'red'",
    "#",
    "\\",
)

FOREIGN = (
    "Color = (SELECT 1)",
    "Amount = 1 + 1",
    "Amount + 1 = 2",
    "Amount = -'1'",
    "Color = 'red' GROUP BY Color HAVING Color = 'red'",
    "Color = :value",
    "Color = ?",
    "CASE WHEN Color = 'red' THEN 1 END",
    "EXISTS (SELECT 1)",
    "Amount & 1 = 1",
    "Color = 'red' UNION SELECT 1",
    "é = 'red'",
)

# What the recorded server answers because its lists are in SQL.
OF_SQL = (
    "Keyword01 = 'x'",
    "BatcherNamespace = 'x'",
    "Moment = '2020-01-02T03:04:05Z'",
    "GROUP BY ExecutionStatus",
)

UNKNOWN = (
    "Nothing = 'x'",
    "color = 'red'",
    "workflowid = 'x'",
    "NamespaceId = 'x'",
    "VisibilityTaskKey = 'x'",
    "Memo = 'x'",
    "run_id = 'x'",
    "Nothing IS NULL",
    "Nothing BETWEEN 1 AND 2",
    "Nothing IN (1)",
    "Color = 'red' AND Nothing = 1",
    "TemporalNothing = 'x'",
    "TemporalSchedulePaused = true",
    "TemporalScheduledById = 'x'",
    "ScheduleId = 'x'",
    "RunId = 'x'",
    "BinaryChecksums = 'x'",
    "BatcherUser = 'x'",
    "TemporalChangeVersion = 'x'",
    "TemporalWorkerDeployment = 'x'",
    "TemporalWorkflowVersioningBehavior = 'Pinned'",
    "TemporalReportedProblems = 'x'",
)

MISTYPED = (
    "Color = 1",
    "Color = true",
    "Color = 1.5",
    "Color IN ('red', 1)",
    "Color BETWEEN 1 AND 2",
    "Color STARTS_WITH 1",
    "Amount = 'one'",
    "Amount = true",
    "Amount IN (1, 'two')",
    "Amount STARTS_WITH '1'",
    "Amount BETWEEN 'a' AND 'b'",
    "Ratio = 'half'",
    "Ratio = '0.5'",
    "Ratio = true",
    "Ratio STARTS_WITH '1'",
    "Flag = 'true'",
    "Flag = 'yes'",
    "Flag = 1",
    "Flag > true",
    "Flag IN (true, false)",
    "Flag BETWEEN false AND true",
    "Flag STARTS_WITH 't'",
    "Tags = 1",
    "Tags > 'a'",
    "Tags BETWEEN 'a' AND 'b'",
    "Tags STARTS_WITH 'a'",
    "Words = 1",
    "Words > 'a'",
    "Words IN ('a', 'b')",
    "Words BETWEEN 'a' AND 'b'",
    "Words STARTS_WITH 'a'",
    "Words = ''",
    "Words = ' '",
    "Moment = 'yesterday'",
    "Moment = '2020-01-02'",
    "Moment = '2020-01-02 03:04:05'",
    "Moment = true",
    "Moment = 1.5",
    "Moment BETWEEN 'a' AND 'b'",
    "Moment STARTS_WITH '2020'",
    "Moment IN ('2020-01-02T03:04:05Z', 'never')",
    "ExecutionStatus = 'running'",
    "ExecutionStatus = 'Nothing'",
    "ExecutionStatus = 77",
    "ExecutionStatus = 1.5",
    "ExecutionStatus = true",
    "ExecutionStatus > 'Running'",
    "ExecutionStatus IN ('Running', 'Nothing')",
    "ExecutionStatus BETWEEN 'Running' AND 'Failed'",
    "ExecutionStatus STARTS_WITH 'Run'",
    "ExecutionDuration = 'long'",
    "ExecutionDuration = '1d'",
    "ExecutionDuration = '01:02:03'",
    "ExecutionDuration = '-1h'",
    "ExecutionDuration = 1.5",
    "ExecutionDuration = true",
    "CloseTime = 'x'",
    "StartTime = true",
    "HistoryLength = 'x'",
    "HistoryLength STARTS_WITH 'x'",
    "StateTransitionCount = 'x'",
)

COUNTS = (
    "GROUP BY ExecutionStatus, WorkflowType",
    "GROUP BY WorkflowType",
    "GROUP BY Color",
    "GROUP BY Nothing",
    "GROUP BY 1",
    "GROUP BY",
    "GROUP BY TemporalNamespaceDivision",
    "Color = 'red' GROUP Color",
)


async def answers(stage: Stage, queries: tuple[str, ...]) -> None:
    """Which runs each finds, or what is said of it."""
    for query in queries:
        stage.note("query", query)
        found = await stage.answered("ListWorkflowExecutions", query=query)
        if found is not None:
            stage.note("found", [one.execution.workflow_id.rpartition("-")[2] for one in found.executions])


async def refusals(stage: Stage, queries: tuple[str, ...]) -> None:
    await stage.settle(**ATTRIBUTES)
    await answers(stage, queries)


@scenario
async def list_by_operators(stage: Stage) -> None:
    """Each operator on each type."""
    await with_values(stage)
    await answers(stage, ANSWERED)


@scenario
async def list_ordered(stage: Stage) -> None:
    """With an order of the caller's."""
    await stage.settle(**ATTRIBUTES)
    await answers(stage, ORDERS)


@scenario
async def list_malformed(stage: Stage) -> None:
    """What is no query."""
    await refusals(stage, MALFORMED)


@scenario
async def list_by_unknown(stage: Stage) -> None:
    """Attributes that there are not, and some that there are."""
    await refusals(stage, UNKNOWN)


@scenario
async def list_mistyped(stage: Stage) -> None:
    """Values and operators that do not go with the attribute."""
    await refusals(stage, MISTYPED)


@scenario
async def count_refused(stage: Stage) -> None:
    """Groups of counts that cannot be made."""
    await stage.settle(**ATTRIBUTES)
    for query in COUNTS:
        stage.note("query", query)
        await stage.refused("CountWorkflowExecutions", query=query)


@scenario
async def list_by_foreign_sql(stage: Stage) -> None:
    """SQL that no list can answer."""
    await refusals(stage, FOREIGN)


@scenario
async def list_as_in_sql(stage: Stage) -> None:
    """What depends on where lists are kept."""
    await with_values(stage)
    await answers(stage, OF_SQL)
    await stage.refused("CountWorkflowExecutions", query="ORDER BY StartTime")


@scenario
async def list_by_long_query(stage: Stage) -> None:
    """Queries of great length or depth."""
    await stage.settle(**ATTRIBUTES)
    for query in (
        " OR ".join(["Color = 'x'"] * 300),
        "(" * 300 + "Color = 'x'" + ")" * 300,
        f"Color IN ({', '.join(repr(str(n)) for n in range(600))})",
        f"Color = '{'x' * 3000}'",
    ):
        await stage.refused("ListWorkflowExecutions", query=query)
