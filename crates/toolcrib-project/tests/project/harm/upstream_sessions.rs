//! Sessions with MCP servers that two identities shared without a word about it.

use crate::folder::Folder;

#[test]
fn two_tokens_without_a_principal_were_one_identity() {
    let tokens = |first: &str, second: &str| {
        Folder::with(&format!(
            "[[serve.token]]\nsecret = 'secret:A'\n{first}\n[[serve.token]]\nsecret = 'secret:B'\n{second}\n\
             [secrets]\nA = {{ env = 'HOME' }}\nB = {{ env = 'PATH' }}\n"
        ))
    };
    insta::assert_snapshot!(tokens("", "").problems(), @r"
    toolcrib.toml:1:1: this token and the one at toolcrib.toml:4 have no principal, so their bearers would share sessions of MCP servers and artifacts
        help: give each `[[serve.token]]` a `principal`, the same one to share on purpose
    ");
    tokens("principal = 'ana'", "").load();
    tokens("principal = 'ana'", "principal = 'ana'").load();
    tokens("tenant = 'a'", "tenant = 'b'").load();
}
