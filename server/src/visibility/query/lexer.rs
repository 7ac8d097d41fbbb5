//! From text to tokens: words, numbers, strings and symbols, with comments left out.

/// A piece of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Where it ends, in bytes.
    pub(super) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, in backticks or not.
    Name(String),
    /// One of `KEYWORDS`, in any case; never in backticks.
    Keyword(&'static str),
    /// In quotes, escapes resolved.
    Text(String),
    /// As it is written, without a sign.
    Number(String),
    /// One of `SYMBOLS`.
    Symbol(&'static str),
    /// Unreadable text; the last token.
    Bad(String),
    End,
}

/// Reserved words: names that need backticks because this grammar or another SQL uses them.
const KEYWORDS: [&str; 29] = [
    "and",
    "or",
    "not",
    "in",
    "between",
    "is",
    "null",
    "true",
    "false",
    "like",
    "regexp",
    "rlike",
    "starts_with",
    "order",
    "group",
    "by",
    "asc",
    "desc",
    "limit",
    "having",
    "where",
    "select",
    "from",
    "union",
    "exists",
    "case",
    "distinct",
    "xor",
    "for",
];

/// Longest first: the first match is taken.
const SYMBOLS: [&str; 23] = [
    "<=>", "<=", "<>", ">=", "!=", "&&", "||", "=", "<", ">", "(", ")", ",", ";", "+", "-", "*", "/", "%", "^", "~",
    ".", "!",
];

/// All tokens of the text; the last is `End` or `Bad`.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let kind = lexer.next();
        let is_last = matches!(kind, Kind::Bad(_) | Kind::End);
        tokens.push(Token { kind, end: lexer.at });
        if is_last {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Kind {
        if let Err(unfinished) = self.skip_blanks_and_comments() {
            return unfinished;
        }
        let Some(first) = self.peek() else { return Kind::End };
        match first {
            '\'' | '"' => self.quoted(first),
            '`' => self.quoted_name(),
            '0'..='9' => self.number(),
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(),
            first if is_letter(first) => self.word(),
            other => self.symbol(other),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_blanks_and_comments(&mut self) -> Result<(), Kind> {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\n' | '\r' | '\t'));
            let rest = self.rest();
            if rest.starts_with("--") || rest.starts_with("//") || rest.starts_with('#') {
                self.take_while(|c| c != '\n');
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(length) = comment.find("*/") else {
                    self.at = self.text.len();
                    return Err(Kind::Bad(rest.to_owned()));
                };
                self.at += 2 + length + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self) -> Kind {
        let word = self.take_while(|c| is_letter(c) || c.is_ascii_digit());
        let keyword = KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(word));
        keyword.map_or_else(|| Kind::Name(word.to_owned()), Kind::Keyword)
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.at += 2;
            self.take_while(|c| c.is_ascii_hexdigit());
        } else {
            self.decimal();
        }
        let number = self.text[start..self.at].to_owned();
        if self.peek().is_some_and(is_letter) { Kind::Bad(number) } else { Kind::Number(number) }
    }

    fn decimal(&mut self) {
        let is_digit = |c: char| c.is_ascii_digit();
        self.take_while(is_digit);
        if self.rest().starts_with('.') {
            self.at += 1;
            self.take_while(is_digit);
        }
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            self.take_while(is_digit);
        }
    }

    /// Within quotes the quote is written twice or after a backslash.
    fn quoted(&mut self, quote: char) -> Kind {
        self.at += quote.len_utf8();
        let mut content = String::new();
        let mut rest = self.rest().char_indices();
        while let Some((at, c)) = rest.next() {
            if c == '\\' {
                let Some((_, escaped)) = rest.next() else { break };
                content.push(unescaped(escaped));
            } else if c != quote {
                content.push(c);
            } else if rest.as_str().starts_with(quote) {
                rest.next();
                content.push(quote);
            } else {
                self.at += at + quote.len_utf8();
                return Kind::Text(content);
            }
        }
        self.at = self.text.len();
        Kind::Bad(content)
    }

    /// Within backticks a backtick is written twice, and a backslash is itself.
    fn quoted_name(&mut self) -> Kind {
        self.at += 1;
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(|c| c != '`'));
            if self.rest().starts_with("``") {
                self.at += 2;
                name.push('`');
            } else if self.rest().starts_with('`') {
                self.at += 1;
                return if name.is_empty() { Kind::Bad(name) } else { Kind::Name(name) };
            } else {
                return Kind::Bad(name);
            }
        }
    }

    fn symbol(&mut self, first: char) -> Kind {
        let symbol = SYMBOLS.into_iter().find(|symbol| self.rest().starts_with(symbol));
        self.at += symbol.map_or(first.len_utf8(), str::len);
        symbol.map_or_else(|| Kind::Bad(first.to_string()), Kind::Symbol)
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '@'
}

fn unescaped(c: char) -> char {
    match c {
        '0' => '\0',
        'b' => '\u{8}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'Z' => '\u{1a}',
        other => other,
    }
}
