//! Modules depend one way: the largest circle of modules that lie side by side has a limit in each
//! crate.
//!
//! A module *uses* another when a path in its code, or in a module inside of it, leads there:
//! `crate::`, `super::` and `self::` paths, in `use` declarations and elsewhere. A name that a
//! module re-exports leads to the module that it comes from. Modules are compared with those side
//! by side (the children of one module), so that a parent and its children are no circle. Code of
//! tests does not count.

use crate::tidy::complaint::Complaint;
use crate::tidy::source::rust_text::{Source, is_word_at};
use std::collections::{BTreeMap, BTreeSet};

/// The largest circle of each crate that has one, modules; none may have more than five. A number
/// must be lowered with the circle, and never raised.
const LIMITS: [(&str, usize); 12] = [
    ("bench", 3),
    ("cli", 4),
    ("disk", 5),
    ("measure", 2),
    ("net", 3),
    ("policy", 2),
    ("proxy", 5),
    ("semantics", 3),
    ("sim", 4),
    ("store", 3),
    ("trace", 3),
    ("wire", 3),
];

/// Elsewhere modules depend one way.
const LARGEST: usize = 1;

/// A module by the segments of its path in its crate: none are the root.
type Module = Vec<String>;

/// The modules of one crate, and what each names.
#[derive(Debug, Default)]
struct Crate {
    modules: BTreeMap<Module, Code>,
}

#[derive(Debug, Default)]
struct Code {
    path: String,
    /// Paths in the code, segment by segment.
    paths: BTreeSet<Vec<String>>,
    /// Where names lead that `use` brings into the module.
    names: BTreeMap<String, Vec<String>>,
}

/// Modules side by side that all lead to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tidy) struct Circle {
    /// Its crate's folder.
    pub(in crate::tidy) room: String,
    /// Where the parent of its modules stands.
    path: String,
    pub(in crate::tidy) modules: Vec<String>,
}

/// The largest circle of each crate that has one.
pub(in crate::tidy) fn largest(sources: &[Source<'_>]) -> Vec<Circle> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    for source in sources {
        if let Some((room, module)) = place(&source.file.path) {
            let code = Code::of(source);
            crates.entry(room).or_default().modules.insert(module, code);
        }
    }
    let largest = crates.iter().filter_map(|(room, it)| it.largest(room));
    largest.collect()
}

/// Complains about circles that are larger than they may be, and about limits that are larger than
/// they need to be.
pub(in crate::tidy) fn check(circles: &[Circle]) -> Vec<Complaint> {
    let too_large = circles.iter().filter_map(|circle| {
        let (count, limit) = (circle.modules.len(), limit(&circle.room));
        let names = circle.modules.join(", ");
        let what =
            format!("{count} modules that all lead to each other ({names}), more than {limit}");
        let instead = "move what several of them need into a module of its own";
        (count > limit).then(|| Complaint::new(&circle.path, 1, what, instead))
    });
    let too_loose = LIMITS.iter().filter_map(|(room, limit)| {
        let circle = circles.iter().find(|circle| circle.room == *room);
        let count = circle.map_or(0, |circle| circle.modules.len());
        let what =
            format!("circles of `{room}` may have {limit} modules, and the largest has {count}");
        (count < *limit).then(|| Complaint::new(HERE, 1, what, "lower the limit"))
    });
    too_large.chain(too_loose).collect()
}

/// Where the limits stand.
const HERE: &str = "xtask/src/tidy/crates/circles.rs";

fn limit(room: &str) -> usize {
    let known = LIMITS.iter().find(|(known, _)| *known == room);
    known.map_or(LARGEST, |(_, limit)| *limit)
}

impl Circle {
    /// One line about it.
    pub(in crate::tidy) fn line(&self) -> String {
        let Self { room, modules, .. } = self;
        let (count, names) = (modules.len(), modules.join(", "));
        format!("largest circle of {room}: {count} modules ({names})")
    }
}

/// The crate that a file belongs to, and which module of it it is; `None` for what is not in a
/// crate's `src`.
fn place(path: &str) -> Option<(&str, Module)> {
    let (room, inside) = match path.strip_prefix("crates/") {
        Some(rest) => rest.split_once("/src/")?,
        None => ("xtask", path.strip_prefix("xtask/src/")?),
    };
    let segments = inside.strip_suffix(".rs")?.split('/');
    let mut module: Module = segments.map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod") || matches!(inside, "lib.rs" | "main.rs") {
        module.pop();
    }
    Some((room, module))
}

impl Code {
    fn of(source: &Source<'_>) -> Self {
        let lines = source.lines().filter(|(_, _, is_test)| !is_test);
        let text: String = lines.flat_map(|(_, code, _)| [code, "\n"]).collect();
        let mut code = Self {
            path: source.file.path.clone(),
            ..Self::default()
        };
        let mut rest = text.as_str();
        while let Some((before, declaration, after)) = next_use(rest) {
            code.paths.extend(paths_in(before));
            let mut leaves = Vec::new();
            leaves_of(declaration, &[], &mut leaves);
            for (name, path) in leaves {
                code.paths.insert(path.clone());
                code.names.insert(name, path);
            }
            rest = after;
        }
        code.paths.extend(paths_in(rest));
        code
    }
}

/// What stands before the next `use` declaration, its tree, and what stands behind it.
fn next_use(text: &str) -> Option<(&str, &str, &str)> {
    let is_use = |at: usize| {
        let line = text[..at].rsplit('\n').next().unwrap_or("").trim();
        is_word_at(text, at, "use")
            && (line.is_empty() || (line.starts_with("pub") && !line.contains(['{', '=', ';'])))
    };
    let mut places = text.match_indices("use").map(|(at, _)| at);
    let at = places.find(|at| is_use(*at))?;
    let (tree, after) = text[at + "use".len()..].split_once(';')?;
    Some((&text[..at], tree, after))
}

/// The names that a tree of `use` brings, and where each leads.
fn leaves_of(tree: &str, prefix: &[String], leaves: &mut Vec<(String, Vec<String>)>) {
    let segments = |text: &str| -> Vec<String> {
        let parts = text.split("::").map(str::trim);
        let named = parts.filter(|part| !part.is_empty()).map(str::to_owned);
        prefix.iter().cloned().chain(named).collect()
    };
    if let Some((head, group)) = tree.split_once('{') {
        let head = segments(head);
        let group = group.rsplit_once('}').map_or(group, |(inside, _)| inside);
        for part in parts_of(group) {
            leaves_of(part, &head, leaves);
        }
        return;
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = segments(path);
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        let name = Some(name.trim()).filter(|name| !name.is_empty());
        leaves.push((name.map_or(last, str::to_owned), path));
    }
}

/// What commas part, where braces are one thing.
fn parts_of(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_u32, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Paths in code that begin in its crate.
fn paths_in(code: &str) -> BTreeSet<Vec<String>> {
    let mut paths = BTreeSet::new();
    for root in ["crate", "super", "self"] {
        for (at, _) in code.match_indices(root) {
            let is_path = is_word_at(code, at, root)
                && code[at + root.len()..].starts_with("::")
                && !code[..at].ends_with("::");
            if is_path {
                let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
                let end = code[at..].find(|c| !is_part(c));
                let end = end.map_or(code.len(), |end| at + end);
                let segments = code[at..end].split("::").filter(|part| !part.is_empty());
                paths.insert(segments.map(str::to_owned).collect());
            }
        }
    }
    paths
}

impl Crate {
    /// The module that `path` leads to when it stands in `module`; `None` outside of the crate.
    fn resolve(&self, module: &[String], path: &[String], steps: usize) -> Option<Module> {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Module::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => (
                module[..module.len().checked_sub(supers)?].to_vec(),
                &path[supers..],
            ),
            child => {
                let child = [module, &[child.to_owned()]].concat();
                self.modules
                    .contains_key(&child)
                    .then_some((module.to_vec(), path))?
            }
        };
        while let Some((first, behind)) = rest.split_first() {
            at.push(first.clone());
            if !self.modules.contains_key(&at) {
                at.pop();
                break;
            }
            rest = behind;
        }
        let name = rest.first().filter(|_| at != module && steps > 0);
        let known = name.and_then(|name| self.modules.get(&at)?.names.get(name));
        let beyond = known.and_then(|path| self.resolve(&at, path, steps - 1));
        Some(beyond.unwrap_or(at))
    }

    /// Which modules use which, for the children of each module.
    fn uses(&self) -> BTreeMap<Module, Uses<'_>> {
        let mut uses: BTreeMap<Module, Uses<'_>> = BTreeMap::new();
        for (module, code) in &self.modules {
            for path in &code.paths {
                let Some(used) = self.resolve(module, path, RE_EXPORTS_MAX) else {
                    continue;
                };
                let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(common), used.get(common)) {
                    let children = uses.entry(module[..common].to_vec()).or_default();
                    children.entry(from).or_default().insert(to.clone());
                }
            }
        }
        uses
    }

    fn largest(&self, room: &str) -> Option<Circle> {
        let mut largest: Option<(Module, Vec<String>)> = None;
        for (parent, uses) in self.uses() {
            for modules in circles(&uses) {
                if largest
                    .as_ref()
                    .is_none_or(|(_, known)| known.len() < modules.len())
                {
                    largest = Some((parent.clone(), modules));
                }
            }
        }
        let (parent, modules) = largest?;
        let code = self.modules.get(&parent);
        Some(Circle {
            room: room.to_owned(),
            path: code.map_or_else(String::new, |code| code.path.clone()),
            modules,
        })
    }
}

/// A name is followed over so many modules that only pass it on.
const RE_EXPORTS_MAX: usize = 6;

/// Which children of a module use which others.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<String>>;

/// All that `from` leads to, in however many steps.
fn reached<'a>(uses: &'a Uses<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(at) = next.pop() {
        for to in uses.get(at).into_iter().flatten() {
            if reached.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    reached
}

/// The sets of modules that all lead to each other.
fn circles(uses: &Uses<'_>) -> Vec<Vec<String>> {
    let reach = uses.keys().map(|module| (*module, reached(uses, module)));
    let reach: BTreeMap<&str, BTreeSet<&str>> = reach.collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut circles = Vec::new();
    for (module, to) in &reach {
        if !to.contains(module) || seen.contains(module) {
            continue;
        }
        let comes_back = |other: &&&str| reach.get(**other).is_some_and(|to| to.contains(module));
        let circle: Vec<&str> = to.iter().filter(comes_back).copied().collect();
        seen.extend(&circle);
        circles.push(circle.into_iter().map(str::to_owned).collect());
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::complaint::expect;
    use crate::tidy::source::rust_text::sources;
    use crate::tidy::tree::File;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::new(path, text))
            .collect();
        largest(&sources(&files))
    }

    /// Compares the largest circle of one crate.
    fn check_circle(files: &[(&str, &str)], expected: &[&str]) {
        let circles = circles_of(files);
        let modules = circles.first().map_or(&[][..], |circle| &circle.modules);
        assert_eq!(modules, expected, "{circles:?}");
    }

    const LIB: (&str, &str) = (
        "crates/a/src/lib.rs",
        "mod b;\nmod c;\nmod d;\npub use d::Deep;",
    );

    #[test]
    fn modules_that_use_each_other_form_a_cycle() {
        let c = ("crates/a/src/c.rs", "fn f() { super::d::g(); }");
        let d = (
            "crates/a/src/d.rs",
            "use crate::{b::{self, B as Other}, x};",
        );
        let b = (
            "crates/a/src/b.rs",
            "use crate::c::C;\npub(crate) use self::e::E;",
        );
        check_circle(&[LIB, b, c, d], &["b", "c", "d"]);
        check_circle(&[LIB, b, c], &[]);
    }

    #[test]
    fn re_exported_name_leads_to_its_defining_module() {
        let b = ("crates/a/src/b.rs", "use crate::Deep;");
        let d = ("crates/a/src/d.rs", "use crate::b;");
        check_circle(&[LIB, b, d], &["b", "d"]);
    }

    #[test]
    fn nested_modules_count_for_the_modules_around_them() {
        let b = (
            "crates/a/src/b/inner.rs",
            "use super::super::c::C;\nuse super::Own;",
        );
        let c = ("crates/a/src/c.rs", "use crate::b::inner::Inner;");
        check_circle(
            &[
                LIB,
                ("crates/a/src/b.rs", "mod inner;\nuse inner::I;"),
                b,
                c,
            ],
            &["b", "c"],
        );
    }

    #[test]
    fn tests_comments_and_other_crates_do_not_count() {
        let b = (
            "crates/a/src/b.rs",
            "use other::c::C; // crate::c\n#[cfg(test)]\nmod tests { use crate::c::C; }",
        );
        let c = ("crates/a/src/c.rs", "use crate::b::B;");
        let test = ("crates/a/tests/t.rs", "use crate::c;");
        check_circle(&[LIB, b, c, test], &[]);
    }

    #[test]
    fn cycle_above_its_limit_or_a_limit_above_the_cycle_is_refused() {
        let circle = |count: usize| Circle {
            room: "a".to_owned(),
            path: "crates/a/src/lib.rs".to_owned(),
            modules: (0..count).map(|number| format!("m{number}")).collect(),
        };
        let limits = LIMITS.map(|(room, limit)| Circle {
            room: room.to_owned(),
            ..circle(limit)
        });
        let with = |count: usize| [&limits[..], &[circle(count)]].concat();
        expect(&check(&with(LARGEST)), &[]);
        expect(&check(&with(LARGEST + 1)), &[(1, "2 modules")]);
        assert!(LIMITS.iter().all(|(_, limit)| *limit <= 5));
        expect(&check(&[circle(1)]), &LIMITS.map(|_| (1, "may have")));
    }
}
