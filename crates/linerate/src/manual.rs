//! The manual pages.

use std::path::Path;

use clap::{Arg, ArgAction, Command};

/// Writes a page for the program and for each verb to `directory`.
pub fn write(program: Command, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut program = program.disable_help_subcommand(true);
    program.build();
    clap_mangen::generate_to(program.mut_subcommands(with_synopsis), directory)
}

/// The generator's own synopsis leaves out the values of options.
fn with_synopsis(verb: Command) -> Command {
    let name = verb.get_bin_name().unwrap_or(verb.get_name()).to_owned();
    let mut words = vec![name];
    let (required, optional): (Vec<&Arg>, Vec<&Arg>) =
        verb.get_opts().partition(|option| option.is_required_set());
    let flags = verb.get_arguments().filter(|it| !it.is_positional() && !has_value(it));
    words.extend(flags.filter_map(|it| it.get_long()).map(|long| format!("[--{long}]")));
    words.extend(optional.iter().filter_map(|it| option(it)).map(|text| format!("[{text}]")));
    words.extend(required.iter().filter_map(|it| option(it)));
    for argument in verb.get_positionals() {
        let many = matches!(argument.get_action(), ArgAction::Append);
        let text = format!("{}{}", value(argument), if many { "..." } else { "" });
        words.push(if argument.is_required_set() { text } else { format!("[{text}]") });
    }
    verb.override_usage(words.join(" "))
}

fn option(option: &Arg) -> Option<String> {
    Some(format!("--{} {}", option.get_long()?, value(option)))
}

fn value(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
}

fn has_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}
