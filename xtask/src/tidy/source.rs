//! Separates the code of a Rust file from its literals and comments: enough of a lexer for rules about text, no more.

/// The text of a literal, and where it begins.
pub(super) struct Literal {
    pub(super) line: usize,
    pub(super) text: String,
}

#[derive(Default)]
pub(super) struct RustSource {
    /// The file with every character of a literal or a comment turned into a space. Lines stay where they are.
    pub(super) code: String,
    pub(super) strings: Vec<Literal>,
    pub(super) comments: Vec<Literal>,
}

impl RustSource {
    pub(super) fn parse(text: &str) -> Self {
        let mut lexer = Lexer { rest: text, line: 1, source: Self::default() };
        while !lexer.rest.is_empty() {
            lexer.step();
        }
        lexer.source
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    source: RustSource,
}

impl Lexer<'_> {
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            let length = self.rest.find('\n').unwrap_or(self.rest.len());
            self.comment(length);
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment_length(self.rest));
        } else if let Some(hashes) = raw_string_hashes(self.rest).filter(|_| !self.is_within_name()) {
            self.raw_string(hashes);
        } else if self.rest.starts_with('"') {
            self.string(string_length(self.rest));
        } else if self.rest.starts_with('\'') {
            self.blank(char_length(self.rest));
        } else {
            let length = self.rest.chars().next().map_or(0, char::len_utf8);
            self.source.code.push_str(&self.rest[..length]);
            self.skip(length);
        }
    }

    /// Whether an `r` here would end a name, as in `for"`.
    fn is_within_name(&self) -> bool {
        self.source.code.chars().next_back().is_some_and(|c| (c.is_alphanumeric() && c != 'b' && c != 'c') || c == '_')
    }

    fn comment(&mut self, length: usize) {
        let text = self.rest[..length].to_owned();
        self.source.comments.push(Literal { line: self.line, text });
        self.blank(length);
    }

    fn raw_string(&mut self, hashes: usize) {
        let opening = 2 + hashes;
        let closing = format!("\"{}", "#".repeat(hashes));
        let body = self.rest[opening..].find(&closing).unwrap_or(self.rest.len() - opening);
        let length = (opening + body + closing.len()).min(self.rest.len());
        self.string(length);
    }

    fn string(&mut self, length: usize) {
        self.source.strings.push(Literal { line: self.line, text: self.rest[..length].to_owned() });
        self.blank(length);
    }

    fn blank(&mut self, length: usize) {
        for c in self.rest[..length].chars() {
            self.source.code.push(if c == '\n' { '\n' } else { ' ' });
        }
        self.skip(length);
    }

    fn skip(&mut self, length: usize) {
        self.line += self.rest[..length].matches('\n').count();
        self.rest = &self.rest[length..];
    }
}

/// Of `r"`, `r#"`, …
fn raw_string_hashes(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Block comments nest.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Of a character literal; 1 if it is a lifetime.
fn char_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            text[from..].find('\'').map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
