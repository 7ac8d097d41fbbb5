//! Recursive-descent parser: from tokens to a tree. Checks the grammar; `convert` resolves names to attributes.

use super::error::QueryError;
use super::filter::Direction;
use super::lexer::{Kind, Token, tokens};

/// A query as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) filter: Option<Expression>,
    pub(super) group_by: Vec<Expression>,
    pub(super) order_by: Vec<(Expression, Direction)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Comparison {
        left: Box<Expression>,
        operator: Operator,
        right: Box<Expression>,
    },
    Between {
        left: Box<Expression>,
        negated: bool,
        from: Box<Expression>,
        to: Box<Expression>,
    },
    Is {
        left: Box<Expression>,
        what: Is,
    },
    Parentheses(Box<Expression>),
    Tuple(Vec<Expression>),
    Name(String),
    Text(String),
    /// As it is written, with its sign.
    Number(String),
    Bool(bool),
    Null,
    Call,
    /// A sign or `!` before something that is no number.
    Unary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    Null,
    NotNull,
    TrueOrFalse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    StartsWith,
    NotStartsWith,
    /// An SQL operator that visibility does not support.
    Foreign(&'static str),
}

/// Lengths of the statement prefixes that the reference puts before a query: positions count from there.
const BEFORE_CLAUSES: usize = "select * from table1 ".len();
const BEFORE_FILTER: usize = "select * from table1 where ".len();

/// Nesting of parentheses at most; bounds the recursion.
const NESTING_MAX: usize = 200;

pub(super) fn parse(text: &str) -> Result<Statement, QueryError> {
    let text = text.trim();
    let starts_with = |clause: &str| text.get(..clause.len()).is_some_and(|head| head.eq_ignore_ascii_case(clause));
    let has_filter = !text.is_empty() && !starts_with("order by") && !starts_with("group by");
    let before = if has_filter { BEFORE_FILTER } else { BEFORE_CLAUSES };
    let mut parser = Parser { tokens: tokens(text), at: 0, nesting: 0, before };
    let filter = if has_filter { Some(parser.any()?) } else { None };
    parser.clauses(filter)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
    before: usize,
}

impl Parser {
    fn token(&self) -> &Token {
        // The last token, `End` or `Bad`, is never consumed.
        &self.tokens[self.at]
    }

    fn wrong(&self) -> QueryError {
        self.malformed("syntax error")
    }

    fn malformed(&self, what: &'static str) -> QueryError {
        let near = match &self.token().kind {
            Kind::Name(text) | Kind::Text(text) | Kind::Number(text) | Kind::Bad(text) => text.clone(),
            Kind::Keyword(keyword) => (*keyword).to_owned(),
            Kind::Symbol(_) | Kind::End => String::new(),
        };
        QueryError::Malformed { what, position: self.before + self.token().end + 1, near }
    }

    fn is(&self, wanted: &str) -> bool {
        matches!(&self.token().kind, Kind::Keyword(text) | Kind::Symbol(text) if *text == wanted)
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_wanted = self.is(wanted);
        self.at += usize::from(is_wanted);
        is_wanted
    }

    fn expect(&mut self, wanted: &str) -> Result<(), QueryError> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong()) }
    }

    /// Clauses after the filter: `GROUP BY` and `ORDER BY`, nothing else.
    fn clauses(&mut self, filter: Option<Expression>) -> Result<Statement, QueryError> {
        let mut statement = Statement { filter, group_by: Vec::new(), order_by: Vec::new() };
        if self.take("group") {
            self.expect("by")?;
            statement.group_by = self.list(Self::any)?;
        }
        if self.is("having") {
            return Err(QueryError::NotSupported("'HAVING' clause".to_owned()));
        }
        if self.take("order") {
            self.expect("by")?;
            statement.order_by = self.list(Self::ordering)?;
        }
        let is_limited = self.take("limit");
        if is_limited {
            self.list(Self::operand)?;
        }
        self.take(";");
        match self.token().kind {
            Kind::End if is_limited => Err(QueryError::NotSupported("'LIMIT' clause".to_owned())),
            Kind::End => Ok(statement),
            Kind::Name(_) | Kind::Keyword(_) | Kind::Text(_) | Kind::Number(_) | Kind::Symbol(_) | Kind::Bad(_) => {
                Err(self.wrong())
            }
        }
    }

    fn ordering(&mut self) -> Result<(Expression, Direction), QueryError> {
        let by = self.any()?;
        let direction = if self.take("desc") { Direction::Descending } else { Direction::Ascending };
        if direction == Direction::Ascending {
            self.take("asc");
        }
        Ok((by, direction))
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut items = vec![item(self)?];
        while self.take(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn any(&mut self) -> Result<Expression, QueryError> {
        let mut terms = vec![self.all()?];
        while self.take("or") || self.take("||") {
            terms.push(self.all()?);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expression::Or(terms) })
    }

    fn all(&mut self) -> Result<Expression, QueryError> {
        let mut terms = vec![self.maybe_not()?];
        while self.take("and") || self.take("&&") {
            terms.push(self.maybe_not()?);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expression::And(terms) })
    }

    fn maybe_not(&mut self) -> Result<Expression, QueryError> {
        // Two negations cancel: any number of them makes the tree at most one deeper.
        let mut negations = 0_usize;
        while self.take("not") {
            negations += 1;
        }
        let inner = self.predicate()?;
        Ok(if negations % 2 == 1 { Expression::Not(Box::new(inner)) } else { inner })
    }

    fn predicate(&mut self) -> Result<Expression, QueryError> {
        let left = Box::new(self.operand()?);
        let compared = self.comparison(left)?;
        if !self.take("is") {
            return Ok(compared);
        }
        let negated = self.take("not");
        let what = match negated {
            false if self.take("null") => Is::Null,
            true if self.take("null") => Is::NotNull,
            _ if self.take("true") || self.take("false") => Is::TrueOrFalse,
            _ => return Err(self.wrong()),
        };
        Ok(Expression::Is { left: Box::new(compared), what })
    }

    fn comparison(&mut self, left: Box<Expression>) -> Result<Expression, QueryError> {
        let negated = self.take("not");
        if self.take("between") {
            let from = Box::new(self.operand()?);
            self.expect("and")?;
            let to = Box::new(self.operand()?);
            return Ok(Expression::Between { left, negated, from, to });
        }
        if self.take("in") {
            let operator = if negated { Operator::NotIn } else { Operator::In };
            let right = Box::new(self.tuple()?);
            return Ok(Expression::Comparison { left, operator, right });
        }
        let operator = if negated { self.negated_operator()? } else { self.operator() };
        let Some(operator) = operator else { return Ok(*left) };
        let right = Box::new(self.operand()?);
        Ok(Expression::Comparison { left, operator, right })
    }

    fn negated_operator(&mut self) -> Result<Option<Operator>, QueryError> {
        let negated = [
            ("starts_with", Operator::NotStartsWith),
            ("like", Operator::Foreign("NOT LIKE")),
            ("regexp", Operator::Foreign("NOT REGEXP")),
            ("rlike", Operator::Foreign("NOT REGEXP")),
        ];
        let taken = negated.into_iter().find(|(text, _)| self.take(text));
        taken.map(|(_, operator)| Some(operator)).ok_or_else(|| self.wrong())
    }

    fn operator(&mut self) -> Option<Operator> {
        let operators = [
            ("=", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<>", Operator::NotEqual),
            ("<", Operator::Less),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            (">=", Operator::GreaterOrEqual),
            ("starts_with", Operator::StartsWith),
            ("<=>", Operator::Foreign("<=>")),
            ("like", Operator::Foreign("LIKE")),
            ("regexp", Operator::Foreign("REGEXP")),
            ("rlike", Operator::Foreign("REGEXP")),
        ];
        operators.into_iter().find(|(text, _)| self.take(text)).map(|(_, operator)| operator)
    }

    fn tuple(&mut self) -> Result<Expression, QueryError> {
        self.open()?;
        let items = self.list(Self::any)?;
        self.close()?;
        Ok(Expression::Tuple(items))
    }

    fn open(&mut self) -> Result<(), QueryError> {
        if self.is("(") && self.nesting + 1 >= NESTING_MAX {
            return Err(self.malformed("max nesting level reached"));
        }
        self.expect("(")?;
        self.nesting += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), QueryError> {
        self.expect(")")?;
        self.nesting -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<Expression, QueryError> {
        let operand = match &self.token().kind {
            Kind::Symbol("(") => return self.parenthesised(),
            Kind::Symbol("-" | "+" | "!") => return self.signed(),
            Kind::Name(_) => return self.name(),
            Kind::Text(text) => Expression::Text(text.clone()),
            Kind::Number(number) => Expression::Number(number.clone()),
            Kind::Keyword("null") => Expression::Null,
            Kind::Keyword("true") => Expression::Bool(true),
            Kind::Keyword("false") => Expression::Bool(false),
            Kind::Keyword(_) | Kind::Symbol(_) | Kind::Bad(_) | Kind::End => return Err(self.wrong()),
        };
        self.at += 1;
        Ok(operand)
    }

    fn parenthesised(&mut self) -> Result<Expression, QueryError> {
        self.open()?;
        let mut items = self.list(Self::any)?;
        self.close()?;
        if items.len() > 1 {
            return Ok(Expression::Tuple(items));
        }
        Ok(Expression::Parentheses(Box::new(items.swap_remove(0))))
    }

    fn signed(&mut self) -> Result<Expression, QueryError> {
        let mut is_negative = false;
        let mut is_number = true;
        loop {
            if self.take("-") {
                is_negative = !is_negative;
            } else if self.take("!") {
                is_number = false;
            } else if !self.take("+") {
                break;
            }
        }
        let operand = self.operand()?;
        let Expression::Number(number) = operand else { return Ok(Expression::Unary) };
        let signed = if is_negative { format!("-{number}") } else { number };
        Ok(if is_number { Expression::Number(signed) } else { Expression::Unary })
    }

    /// A name, a qualified name, or the call of a function.
    fn name(&mut self) -> Result<Expression, QueryError> {
        let mut name = String::new();
        loop {
            let Kind::Name(part) = &self.token().kind else { return Err(self.wrong()) };
            name.push_str(part);
            self.at += 1;
            if !self.take(".") {
                break;
            }
            name.push('.');
        }
        if !self.is("(") {
            return Ok(Expression::Name(name));
        }
        self.open()?;
        if !self.is(")") && !self.take("*") {
            self.list(Self::any)?;
        }
        self.close()?;
        Ok(Expression::Call)
    }
}

impl Expression {
    /// As the reference's messages call it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::And(_) => "*sqlparser.AndExpr",
            Self::Or(_) => "*sqlparser.OrExpr",
            Self::Not(_) => "*sqlparser.NotExpr",
            Self::Comparison { .. } => "*sqlparser.ComparisonExpr",
            Self::Between { .. } => "*sqlparser.RangeCond",
            Self::Is { .. } => "*sqlparser.IsExpr",
            Self::Parentheses(_) => "*sqlparser.ParenExpr",
            Self::Tuple(_) => "sqlparser.ValTuple",
            Self::Name(_) => "*sqlparser.ColName",
            Self::Text(_) | Self::Number(_) => "*sqlparser.SQLVal",
            Self::Bool(_) => "sqlparser.BoolVal",
            Self::Null => "*sqlparser.NullVal",
            Self::Call => "*sqlparser.FuncExpr",
            Self::Unary => "*sqlparser.UnaryExpr",
        }
    }
}

impl Operator {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "IN",
            Self::NotIn => "NOT IN",
            Self::StartsWith => "STARTS_WITH",
            Self::NotStartsWith => "NOT STARTS_WITH",
            Self::Foreign(text) => text,
        }
    }
}
