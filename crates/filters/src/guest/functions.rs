//! Functions of the host that are not in the ABI, which filters call by their names.

/// A function, what it takes behind the target, and what it does.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) takes: &'static str,
    pub(crate) help: &'static str,
}

const fn function(name: &'static str, takes: &'static str, help: &'static str) -> Function {
    Function { name, takes, help }
}

/// All of them.
pub(crate) static FUNCTIONS: [Function; 7] = [
    function("weir_object_query", "", "Says what is stored."),
    function("weir_object_fetch", "", "Has the response to a GET stored."),
    function(
        "weir_object_validate",
        "",
        "Has the origin say whether the stored response is still valid: `valid`, `replaced` or `dropped`.",
    ),
    function(
        "weir_object_set_expiry",
        "a line with milliseconds",
        "Sets for how long the stored response is fresh.",
    ),
    function(
        "weir_object_delete",
        "",
        "Purges what is stored: how many responses.",
    ),
    function(
        "weir_object_inject",
        "a line with the status, field lines, an empty line, the content",
        "Stores a response.",
    ),
    function(
        "weir_object_read",
        "",
        "Gives the content of the stored response, at most 60 KiB.",
    ),
];

/// Whether there is a function of this name.
pub(crate) fn is_known(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name == name)
}
