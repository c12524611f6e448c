//! As much JSON as the launcher and golden.json write; a package for it would take longer to compile than all the rest.

#[derive(Debug, PartialEq)]
pub enum Json {
    Null,
    True,
    False,
    Number(u64),
    Text(String),
    Items(Vec<Json>),
    Members(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Json {
        let mut reader = Reader { rest: text };
        reader.value()
    }

    pub fn at(&self, key: &str) -> &Json {
        let found = self.members().iter().find(|(name, _)| name == key);
        &found.unwrap_or_else(|| panic!("no {key:?}")).1
    }

    pub fn members(&self) -> &[(String, Json)] {
        let Json::Members(members) = self else { panic!("no object: {self:?}") };
        members
    }

    pub fn items(&self) -> &[Json] {
        let Json::Items(items) = self else { panic!("no array: {self:?}") };
        items
    }

    pub fn text(&self) -> &str {
        let Json::Text(text) = self else { panic!("no string: {self:?}") };
        text
    }

    /// None where it is null.
    pub fn number(&self) -> Option<u64> {
        match self {
            Json::Null => None,
            Json::Number(number) => Some(*number),
            _ => panic!("no number: {self:?}"),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Whether the next text is this, which it takes then.
    fn takes(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Json {
        for (word, value) in [("null", Json::Null), ("true", Json::True), ("false", Json::False)] {
            if self.takes(word) {
                return value;
            }
        }
        if self.takes("[") {
            return Json::Items(self.until("]", Reader::value));
        }
        if self.takes("{") {
            return Json::Members(self.until("}", |reader| {
                let name = reader.value().text().to_string();
                assert!(reader.takes(":"));
                (name, reader.value())
            }));
        }
        if self.takes("\"") {
            return Json::Text(self.string());
        }
        let (number, rest) = self.rest.split_at(self.rest.find(|c: char| !c.is_ascii_digit()).expect("the end"));
        self.rest = rest;
        Json::Number(number.parse().expect("a number"))
    }

    fn until<T>(&mut self, end: &str, one: impl Fn(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        while !self.takes(end) {
            all.push(one(self));
            self.takes(",");
        }
        all
    }

    /// What follows a quotation mark.
    fn string(&mut self) -> String {
        let mut text = String::new();
        let mut characters = self.rest.chars();
        loop {
            match characters.next().expect("the end of a string") {
                '"' => break,
                '\\' => text.push(match characters.next() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some('u') => '?', // in names only
                    Some(other) => other,
                    None => panic!("the end of a string"),
                }),
                other => text.push(other),
            }
        }
        self.rest = characters.as_str();
        text
    }
}
