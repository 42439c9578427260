//! What a module consists of, counted from its source.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, Item, Pat, Type, UseTree};
use xtask::failure::{During, Failure};

/// Numbers of a module, without its tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Counts {
    /// Of its files.
    pub(super) lines: u64,
    /// With something else than a comment.
    pub(super) code_lines: u64,
    /// Of blocks; the value at the end of one too.
    pub(super) statements: u64,
    /// Calls of functions and methods of the contract.
    pub(super) call_sites: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.code_lines += other.code_lines;
        self.statements += other.statements;
        self.call_sites += other.call_sites;
    }
}

/// The functions and methods of the contract, by their names.
pub(super) struct Contract(BTreeSet<String>);

impl Contract {
    /// Of the files of a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut names = Names::default();
        let entries = std::fs::read_dir(folder).during("read the contract")?;
        for entry in entries {
            let path = entry.during("read the contract")?.path();
            if path.extension().is_some_and(|it| it == "rs") {
                names.visit_file(&parse(&read(&path)?, &path)?);
            }
        }
        Ok(Self(names.0))
    }
}

/// Collects the names of functions that others can call.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'a> Visit<'a> for Names {
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if matches!(item.vis, syn::Visibility::Public(_)) {
            self.0.insert(item.sig.ident.to_string());
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.0.insert(item.sig.ident.to_string());
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}

/// Counts the file `path` and the modules below it, but those for which `is_apart` says so: their
/// counts are the second ones.
pub(super) fn count(
    path: &Path,
    contract: &Contract,
    is_apart: &dyn Fn(&str) -> bool,
) -> Result<(Counts, Counts), Failure> {
    let text = read(path)?;
    let file = parse(&text, path)?;
    let (mut main, mut apart) = (count_text(&text, &file, contract)?, Counts::default());
    for item in &file.items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() || is_test(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        let (own, helper) = count(&place(path, &name), contract, is_apart)?;
        match is_apart(&name) {
            true => apart.add(own),
            false => main.add(own),
        }
        apart.add(helper);
    }
    Ok((main, apart))
}

/// Where the module `name` of a file is.
fn place(file: &Path, name: &str) -> PathBuf {
    let folder = match file.file_stem() {
        Some(stem) if stem != "mod" && stem != "lib" => file.with_extension(""),
        _ => file.parent().map(Path::to_owned).unwrap_or_default(),
    };
    let alone = folder.join(format!("{name}.rs"));
    match alone.exists() {
        true => alone,
        false => folder.join(name).join("mod.rs"),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).during(format_args!("read `{}`", path.display()))
}

fn parse(text: &str, path: &Path) -> Result<syn::File, Failure> {
    syn::parse_file(text).during(format_args!("parse `{}`", path.display()))
}

fn count_text(text: &str, file: &syn::File, contract: &Contract) -> Result<Counts, Failure> {
    let tokens: TokenStream = text.parse().during("read tokens")?;
    let mut lines = BTreeSet::new();
    code_lines(tokens, &mut lines);
    let tests: BTreeSet<usize> = file.items.iter().filter_map(test_lines).flatten().collect();
    let mut calls = Calls {
        contract,
        imported: BTreeSet::new(),
        values: BTreeSet::new(),
        counts: Counts::default(),
    };
    calls.visit_file(file);
    let all = text.lines().count() - tests.len();
    Ok(Counts {
        lines: all as u64,
        code_lines: lines.difference(&tests).count() as u64,
        ..calls.counts
    })
}

/// Puts in the lines of tokens that are no documentation.
fn code_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let TokenTree::Punct(mark) = &token
            && mark.as_char() == '#'
        {
            if let Some(TokenTree::Punct(inner)) = tokens.peek()
                && inner.as_char() == '!'
            {
                tokens.next();
            }
            if let Some(TokenTree::Group(group)) = tokens.peek()
                && group.stream().to_string().starts_with("doc =")
            {
                tokens.next();
                continue;
            }
        }
        if let TokenTree::Group(group) = token {
            lines.insert(group.span_open().start().line);
            lines.insert(group.span_close().end().line);
            code_lines(group.stream(), lines);
        } else {
            lines.extend(token.span().start().line..=token.span().end().line);
        }
    }
}

fn test_lines(item: &Item) -> Option<std::ops::RangeInclusive<usize>> {
    let attributes = match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    };
    let span = item.span();
    is_test(attributes).then(|| span.start().line..=span.end().line)
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list().ok();
        attribute.path().is_ident("cfg") && list.is_some_and(|it| it.tokens.to_string() == "test")
    })
}

/// Counts statements, and calls of the contract: of functions of its types, and of methods on
/// values that have one of its types by their declaration.
struct Calls<'c> {
    contract: &'c Contract,
    /// The names that the file has of the contract.
    imported: BTreeSet<String>,
    /// Names of values that have a type of the contract.
    values: BTreeSet<String>,
    counts: Counts,
}

impl Calls<'_> {
    fn is_of_contract(&self, ty: &Type) -> bool {
        let mut words = Words::default();
        words.visit_type(ty);
        words.0.iter().any(|word| self.imported.contains(word))
    }

    /// Whether an expression is a value of the contract, or was got from one.
    fn is_value(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Path(path) => path.path.get_ident().is_some_and(|it| self.has(it)),
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) if self.has(name) => true,
                _ => self.is_value(&field.base),
            },
            Expr::MethodCall(call) => {
                self.is_value(&call.receiver) && self.has_method(&call.method)
            }
            Expr::Call(call) => self.is_function(&call.func),
            Expr::Reference(inner) => self.is_value(&inner.expr),
            Expr::Paren(inner) => self.is_value(&inner.expr),
            Expr::Try(inner) => self.is_value(&inner.expr),
            Expr::Await(inner) => self.is_value(&inner.base),
            _ => false,
        }
    }

    fn has(&self, name: &syn::Ident) -> bool {
        self.values.contains(&name.to_string())
    }

    fn has_method(&self, name: &syn::Ident) -> bool {
        self.contract.0.contains(&name.to_string())
    }

    /// `Type::function` of the contract.
    fn is_function(&self, function: &Expr) -> bool {
        let Expr::Path(path) = function else {
            return false;
        };
        let names: Vec<_> = path.path.segments.iter().map(|it| &it.ident).collect();
        match names[..] {
            [first, .., last] => {
                self.imported.contains(&first.to_string()) && self.has_method(last)
            }
            _ => false,
        }
    }

    fn import(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Name(name) => drop(self.imported.insert(name.ident.to_string())),
            UseTree::Rename(name) => drop(self.imported.insert(name.rename.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|it| self.import(it)),
            UseTree::Path(path) => self.import(&path.tree),
            UseTree::Glob(_) => {}
        }
    }

    fn name(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Ident(name) => drop(self.values.insert(name.ident.to_string())),
            Pat::Type(typed) => self.name(&typed.pat),
            Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|it| self.name(it)),
            _ => {}
        }
    }
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_file(&mut self, file: &'a syn::File) {
        for item in &file.items {
            if let Item::Use(item) = item
                && let UseTree::Path(path) = &item.tree
                && path.ident == "weir_extend"
            {
                self.import(&path.tree);
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if let Some(name) = &field.ident
            && self.is_of_contract(&field.ty)
        {
            self.values.insert(name.to_string());
        }
    }

    fn visit_fn_arg(&mut self, argument: &'a FnArg) {
        if let FnArg::Typed(typed) = argument
            && self.is_of_contract(&typed.ty)
        {
            self.name(&typed.pat);
        }
        visit::visit_fn_arg(self, argument);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init
            && self.is_value(&init.expr)
        {
            self.name(&local.pat);
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, statement: &'a syn::Stmt) {
        self.counts.statements += 1;
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        self.counts.call_sites += u64::from(self.is_function(&call.func));
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let is_call = self.has_method(&call.method) && self.is_value(&call.receiver);
        self.counts.call_sites += u64::from(is_call);
        visit::visit_expr_method_call(self, call);
    }
}

/// The names in a type.
#[derive(Default)]
struct Words(Vec<String>);

impl<'a> Visit<'a> for Words {
    fn visit_ident(&mut self, name: &'a syn::Ident) {
        self.0.push(name.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"//! Documentation.

use std::rc::Rc;
use weir_extend::{Answer, LocalResponse, RequestHead};

/// More of it.
struct Own {
    text: String, // a comment
}

impl Own {
    fn call(&self, head: &mut RequestHead<'_>) -> Answer {
        // a comment
        let length = self.text.take(1);
        if head.fields.get("a").is_some() {
            let response = LocalResponse::new(200, "
                text");
            response.with("b", b"c");
        }

        Answer::Respond(length)
    }
}

#[cfg(test)]
mod tests {
    fn test() {
        head.fields.get("a");
    }
}
"#;

    #[test]
    fn lines_statements_and_calls_are_counted_without_comments_and_tests() {
        let names = ["new", "get", "with", "take"].map(str::to_owned);
        let contract = Contract(names.into());
        let file = syn::parse_file(SOURCE).expect("Rust");
        let counts = count_text(SOURCE, &file, &contract).expect("tokens");
        let expected = Counts {
            lines: 24,
            code_lines: 16,
            statements: 5,
            call_sites: 3,
        };
        assert_eq!(counts, expected);
    }
}
