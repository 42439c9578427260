use super::*;

#[test]
fn commands_keep_number_and_order_up_to_their_maximum() {
    let commands = [
        Command::Relay,
        Command::Invalidate,
        Command::Drop,
        Command::LookUp,
    ];
    assert_eq!(commands.len(), Commands::MAX);
    let all = commands
        .into_iter()
        .fold(Commands::default(), Commands::with);
    assert_eq!(all.to_vec(), commands);
    assert_eq!(all.first(), Some(Command::Relay));
    assert_eq!(Commands::default().first(), None);
}

#[test]
fn transaction_and_commands_fit_in_a_few_cache_lines() {
    assert!(
        size_of::<Transaction>() <= 4 * 64,
        "{}",
        size_of::<Transaction>()
    );
    assert!(size_of::<Commands>() <= 5 * 64, "{}", size_of::<Commands>());
}
