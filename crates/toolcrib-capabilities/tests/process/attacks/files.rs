//! Files that a program must not read or change.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
};

use toolcrib_capabilities::process::{ProcessEnd, SandboxTier};

use crate::sandbox::{CONFINED, Home, is_possible};

/// Scripts that print the key, `$1`, without a sandbox.
const READS: [(&str, &str); 8] = [
    ("by its path", "cat \"$1\""),
    ("through its own root folder", "cat /proc/self/root\"$1\""),
    ("through the root folder of another process", "cat /proc/1/root\"$1\" /proc/$$/root\"$1\""),
    ("through the folder above", "cat ../private/key"),
    ("by a symlink", "ln -s \"$1\" out/link && cat out/link"),
    ("by a symlink to its folder", "ln -s \"${1%/key}\" out/folder && cat out/folder/key"),
    ("by a hard link", "ln \"$1\" out/hard && cat out/hard"),
    (
        "by renaming its folder",
        "mv \"${1%/key}\" out/moved && cat out/moved/key && mv out/moved \"${1%/key}\"",
    ),
];

/// Scripts that change something outside without a sandbox.
const CHANGES: [(&str, &str); 10] = [
    ("overwrite", "echo changed > \"$1\""),
    ("append", "echo more >> \"$1\""),
    ("remove", "rm -f \"$1\""),
    ("create beside it", "echo new > \"${1%/key}/new\""),
    ("create a folder", "mkdir \"${1%/key}/folder\""),
    ("create in its working folder", "echo new > new"),
    ("change its working folder's file", "echo changed > shown"),
    ("change the mode", "chmod 777 \"$1\""),
    ("change the time", "touch -d 2000-01-01 \"$1\""),
    ("through a symlink of its own", "ln -s \"$1\" out/link && echo changed > out/link"),
];

/// Everything about the files outside the writable folder.
fn outside(home: &Home) -> Vec<String> {
    let mut seen = Vec::new();
    let mut folders = vec![home.project.parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            if found.is_dir() {
                if path != home.project.join("out") {
                    folders.push(path.clone());
                }
                seen.push(format!("{}", path.display()));
            } else {
                let (mode, time) = (found.permissions().mode(), found.modified().unwrap());
                let content = fs::read(&path).unwrap();
                seen.push(format!("{} {mode:o} {time:?} {content:?}", path.display()));
            }
        }
    }
    seen.sort();
    seen
}

#[tokio::test]
async fn a_hidden_file_is_not_readable_in_any_way() {
    for (way, script) in READS {
        for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
            let (_, output) = Home::new().output(tier, script).await;
            assert!(!output.contains("the key"), "{tier}, {way}: {output}");
        }
        let (_, output) = Home::new().output(SandboxTier::Tree, script).await;
        assert!(output.contains("the key"), "the attack {way} reads nothing anywhere: {output}");
    }
}

#[tokio::test]
async fn nothing_outside_the_writable_folders_changes() {
    for (way, script) in CHANGES {
        for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
            let home = Home::new();
            let before = outside(&home);
            let (ended, output) = home.output(tier, script).await;
            assert_eq!(outside(&home), before, "{tier}, {way}: {output}");
            assert_ne!(ended, ProcessEnd::Code(0), "{tier}, {way}: {output}");
        }
        let home = Home::new();
        let before = outside(&home);
        home.output(SandboxTier::Tree, script).await;
        assert_ne!(outside(&home), before, "the attack `{way}` changes nothing anywhere");
    }
}

#[tokio::test]
async fn state_in_a_readable_folder_is_hidden_also_if_it_is_created_later() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let script = "cat .toolcrib/state; cat ./.toolcrib/../.toolcrib/state; \
                      cat /proc/self/cwd/.toolcrib/state; ls .toolcrib; ls -a; cat shown";
        let (_, output) = home.output(tier, script).await;
        assert!(!output.contains("the state") && output.contains("shown"), "{tier}: {output}");
        assert!(!output.lines().any(|line| line == "state"), "{tier}: {output}");

        fs::remove_dir_all(home.project.join(".toolcrib")).unwrap();
        let script = "while [ ! -e .toolcrib/state ]; do sleep 0.01; done; cat .toolcrib/state";
        let project = home.project.clone();
        let creates = async move {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            fs::create_dir(project.join(".toolcrib")).unwrap();
            fs::write(project.join(".toolcrib/state"), "the state").unwrap();
        };
        let ((_, output), ()) = tokio::join!(home.output(tier, script), creates);
        assert!(output.contains("Permission denied"), "{tier}: {output}");
    }
}

#[tokio::test]
async fn no_file_of_the_host_is_open_in_a_program() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let _open = File::open(&home.secret).unwrap();
        let script = "for fd in /proc/self/fd/*; do readlink $fd; done; \
                      for n in 3 4 5 6 7 8 9; do cat <&$n; done";
        let (_, output) = home.output(tier, script).await;
        assert!(!output.contains("key"), "{tier}: {output}");
    }
}

#[tokio::test]
async fn secrets_of_the_system_and_devices_are_hidden_from_root_too() {
    let script = "cat /etc/shadow; cat /etc/gshadow; ls /etc/ssl/private /root /home /var; \
                  for device in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/tty /dev/ptmx; do \
                  : < $device; done; cat /sys/kernel/security/lsm; ls /boot";
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let finished = crate::support::run(Home::new().sh(tier, script)).await.unwrap();
        assert_eq!(crate::support::text(&finished.stdout), "", "{tier}");
    }
}
