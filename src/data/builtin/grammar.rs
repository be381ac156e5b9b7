//! The grammar of the built-in corpus.
//!
//! Every function writes one phrase. What is chosen depends only on what a reader of the text so far knows: the
//! page's kind and subject, the open elements, the words before.

use super::table::{Favourite, Table, Writer};
use super::words::{ADJECTIVES, KINDS, NOUNS, VERBS};

/// Sections within sections go so deep.
const DEEPEST: usize = 4;
/// Groups of nouns that like different verbs.
const GROUPS: usize = 4;

pub(super) struct Grammar {
    kinds: Table,
    digits: Table,
    letters: Table,
    /// By kind: adjectives, nouns, and marks that enclose a noun.
    phrases: Vec<Table>,
    /// By kind.
    nouns: Vec<Table>,
    /// By the subject noun's group.
    verbs: Vec<Table>,
    openers: Table,
    determiners: Table,
    tails: Table,
    after_sentence: Table,
    more_digits: Table,
    list_lengths: Table,
    /// What may stand in a section, by whether a section may open.
    blocks: Table,
    deepest_blocks: Table,
}

/// What a page's text depends on.
struct Page {
    id: [&'static str; 4],
    kind: usize,
    /// The noun of the title, which the text prefers.
    subject: usize,
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const LETTERS: [&str; 16] = ["a", "b", "c", "d", "e", "f", "g", "h", "k", "m", "n", "p", "r", "s", "t", "x"];
const DIGIT_WEIGHTS: [u32; 10] = [10, 9, 8, 7, 6, 6, 5, 5, 4, 4];

/// Weights that fall as 1/(rank + 8), in whole numbers with the given sum; the list is turned by `shift` ranks.
fn ranked(words: &[&'static str], sum: u32, shift: usize) -> Vec<(&'static str, u32)> {
    let raw = |i: usize| (1 << 16) / (i as u64 + 8);
    let raw_sum: u64 = (0..words.len()).map(raw).sum();
    let mut weights: Vec<u32> = (0..words.len()).map(|i| (raw(i) * u64::from(sum) / raw_sum) as u32).collect();
    weights[0] += sum - weights.iter().sum::<u32>();
    let n = words.len();
    (0..n).map(|i| (words[i], weights[(i + shift) % n])).collect()
}

impl Grammar {
    pub(super) fn new() -> Self {
        let phrases = (0..KINDS.len()).map(|kind| {
            // Nouns first: their tags are then the nouns' own numbers.
            let mut choices = ranked(&NOUNS[kind], 2304, 0);
            choices.extend([("<b>", 160), ("&quot;", 96)]);
            choices.extend(ranked(&ADJECTIVES, 1536, 6 * kind));
            Table::new(&choices)
        });
        let digits: Vec<_> = DIGITS.into_iter().zip(DIGIT_WEIGHTS).collect();
        let mut more_digits = digits.clone();
        more_digits.push(("\"", 64));
        Self {
            kinds: Table::new(&KINDS),
            digits: Table::new(&digits),
            letters: Table::new(&LETTERS.map(|letter| (letter, 1))),
            phrases: phrases.collect(),
            nouns: NOUNS.iter().map(|nouns| Table::new(&ranked(nouns, 4096, 0))).collect(),
            verbs: (0..GROUPS).map(|g| Table::new(&ranked(&VERBS, 4096, 6 * g))).collect(),
            openers: Table::new(&[("The", 8), ("One", 4), ("Each", 2), ("This", 2)]),
            determiners: Table::new(&[("the", 8), ("one", 5), ("its", 2), ("every", 1)]),
            tails: Table::new(&[
                (".", 28),
                (" of ", 10),
                (" in ", 8),
                (" with ", 5),
                (" near ", 3),
                (", and ", 6),
                (" &amp; ", 2),
                (" (", 2),
            ]),
            after_sentence: Table::new(&[(" ", 5), ("</p>\n", 3)]),
            more_digits: Table::new(&more_digits),
            list_lengths: Table::new(&[("2", 5), ("3", 5), ("4", 3), ("5", 2), ("6", 1)]),
            blocks: Table::new(&[
                ("</", 12),
                (" <p>", 28),
                (" <sec>\n", 7),
                (" <list n=\"", 6),
                (" <data year=\"", 6),
                (" <ref id=\"", 5),
            ]),
            deepest_blocks: Table::new(&[("</", 16), (" <p>", 12), (" <ref id=\"", 4)]),
        }
    }

    /// Writes a page.
    pub(super) fn page(&self, w: &mut Writer) {
        w.put("<page id=\"");
        let id = std::array::from_fn(|_| DIGITS[w.choose(&self.digits)]);
        w.put("\" kind=\"");
        let kind = w.choose(&self.kinds);
        w.put("\">\n <title>");
        let subject = w.choose(&self.nouns[kind]);
        w.put("</title>\n");
        self.section(w, &Page { id, kind, subject }, 0);
        w.put("page>\n");
    }

    /// Writes a section's blocks up to the `</` of its end. Lines are indented by the number of open elements.
    fn section(&self, w: &mut Writer, page: &Page, depth: usize) {
        loop {
            w.put(&" ".repeat(depth));
            let (table, deepest) = if depth < DEEPEST { (&self.blocks, false) } else { (&self.deepest_blocks, true) };
            match (w.choose(table), deepest) {
                (0, _) => return,
                (1, _) => self.paragraph(w, page),
                (2, false) => {
                    self.section(w, page, depth + 1);
                    w.put("sec>\n");
                }
                (3, false) => self.list(w, page, depth),
                (4, false) => self.data(w),
                _ => {
                    page.id.iter().for_each(|digit| w.put(digit));
                    w.put("\"/>\n");
                }
            }
        }
    }

    fn paragraph(&self, w: &mut Writer, page: &Page) {
        loop {
            self.sentence(w, page);
            if w.choose(&self.after_sentence) == 1 {
                return;
            }
        }
    }

    fn sentence(&self, w: &mut Writer, page: &Page) {
        w.choose(&self.openers);
        w.put(" ");
        let noun = self.phrase(w, page);
        w.put(" ");
        self.predicate(w, page, noun);
        loop {
            match w.choose(&self.tails) {
                0 => return,
                1..=4 => self.object(w, page),
                5 => self.predicate(w, page, noun),
                6 => {
                    self.phrase(w, page);
                }
                _ => {
                    w.put("19");
                    w.choose(&self.digits);
                    w.choose(&self.digits);
                    w.put(")");
                }
            }
        }
    }

    /// A verb that suits the subject, and its object.
    fn predicate(&self, w: &mut Writer, page: &Page, noun: usize) {
        w.choose(&self.verbs[noun % GROUPS]);
        w.put(" ");
        self.object(w, page);
    }

    fn object(&self, w: &mut Writer, page: &Page) {
        w.choose(&self.determiners);
        w.put(" ");
        self.phrase(w, page);
    }

    /// A noun with an adjective or marks or neither; returns the noun.
    fn phrase(&self, w: &mut Writer, page: &Page) -> usize {
        const NOUN_COUNT: usize = NOUNS[0].len();
        let subject = Favourite(page.subject);
        let noun = |w: &mut Writer| w.choose_with(&self.nouns[page.kind], subject);
        match w.choose_with(&self.phrases[page.kind], subject) {
            tag if tag < NOUN_COUNT => tag,
            NOUN_COUNT => {
                let tag = noun(w);
                w.put("</b>");
                tag
            }
            tag if tag == NOUN_COUNT + 1 => {
                let tag = noun(w);
                w.put("&quot;");
                tag
            }
            _ => {
                w.put(" ");
                noun(w)
            }
        }
    }

    /// A list whose attribute says how many items follow.
    fn list(&self, w: &mut Writer, page: &Page, depth: usize) {
        let items = w.choose(&self.list_lengths) + 2;
        let indent = " ".repeat(depth + 1);
        w.put("\">\n");
        for _ in 0..items {
            w.put(&indent);
            w.put(" <item key=\"");
            for _ in 0..3 {
                w.choose(&self.letters);
            }
            w.put("\">");
            self.phrase(w, page);
            w.put("</item>\n");
        }
        w.put(&indent);
        w.put("</list>\n");
    }

    fn data(&self, w: &mut Writer) {
        w.put("19");
        w.choose(&self.digits);
        w.choose(&self.digits);
        w.put("\" size=\"");
        w.choose(&self.digits);
        while w.choose(&self.more_digits) < DIGITS.len() {}
        w.put("/>\n");
    }
}
