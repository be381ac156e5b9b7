//! The words of the built-in corpus, each list from common to rare.

/// What a page can be about; a noun list each.
pub(super) const KINDS: [(&str, u32); 4] = [("river", 6), ("engine", 4), ("garden", 4), ("market", 2)];

/// Nouns of each kind of page.
pub(super) const NOUNS: [[&str; 24]; 4] = [
    [
        "water", "bridge", "bank", "valley", "boat", "stone", "flood", "mill", "island", "stream", "harbour",
        "current", "delta", "fish", "canal", "ferry", "reed", "spring", "lock", "otter", "gravel", "heron", "weir",
        "meander",
    ],
    [
        "wheel", "piston", "boiler", "valve", "shaft", "steam", "gear", "pump", "cylinder", "rail", "crank", "spark",
        "bearing", "furnace", "throttle", "belt", "gauge", "rod", "governor", "bolt", "turbine", "flange", "coil",
        "cam",
    ],
    [
        "rose", "tree", "soil", "seed", "wall", "hedge", "bee", "apple", "path", "flower", "root", "pond", "leaf",
        "orchard", "fern", "gate", "moss", "vine", "thistle", "spade", "lawn", "tulip", "compost", "trellis",
    ],
    [
        "price", "trader", "coin", "stall", "grain", "cloth", "debt", "spice", "guild", "buyer", "salt", "wool",
        "copper", "ledger", "cart", "tax", "merchant", "silk", "barrel", "auction", "loan", "scale", "bargain",
        "tariff",
    ],
];

/// Adjectives, of all pages.
pub(super) const ADJECTIVES: [&str; 24] = [
    "old", "small", "great", "early", "narrow", "heavy", "quiet", "new", "broken", "northern", "common", "deep",
    "slow", "famous", "bright", "wooden", "local", "dry", "royal", "hollow", "second", "modern", "empty", "strange",
];

/// Verbs, of all pages.
pub(super) const VERBS: [&str; 24] = [
    "has", "crosses", "carries", "follows", "meets", "holds", "needs", "turns", "covers", "joins", "moves", "feeds",
    "shows", "divides", "supports", "reaches", "guards", "replaces", "lifts", "hides", "serves", "shapes", "marks",
    "outlives",
];
