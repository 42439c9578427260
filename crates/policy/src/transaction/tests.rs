use super::*;

#[test]
fn fourth_command_is_lost_or_the_order() {
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
fn hot_path_values_grow_beyond_a_few_cache_lines() {
    assert!(
        size_of::<Transaction>() <= 4 * 64,
        "{}",
        size_of::<Transaction>()
    );
    assert!(size_of::<Commands>() <= 5 * 64, "{}", size_of::<Commands>());
}
