//! Whatever the files contain, nothing panics.

use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest},
    sample::select,
};
use toolcrib_project::Mode;

use crate::folder::{DATABASE, Folder, TOOL};

/// Lines that lead deep into the readers.
const PIECES: &[&str] = &[
    DATABASE,
    TOOL,
    "[agent]",
    "system = 1",
    "[[tool]]\nkind = \"sql\"\nname = \"é\"\ndescription = \"\"\"é\n\"\"\"",
    "[[tool]]\nkind = \"sql\"\nname = \"a\"\ndescription = \"é\"",
    "statements = [\"é SELECT\", { sql = '''\né :é''' }]",
    "statements = [\"SELECT 'é', :é, nope\"]",
    "[tool.params]",
    "\"é/~\" = { type = \"é\", items = [{}], properties = { \"\" = {} } }",
    "x = { type = [\"string\", 1], optional = true, not = false, anyOf = [[]] }",
    "params.x.y.z = 1e400",
    "[[tool]]\nkind = \"command\"\nname = \"c\"\ndescription = \"é\"\nprogram = \"true\"",
    "args = [\"é{é}\", { value = '''\né{''', when = \"é\" }, 1, {}]\nenv = { \"é\" = \"secret:é\" }",
    "memory_max = \"99999999999999999999GiB\"\nworking_dir = \"é\"\nok_exit_codes = []",
    "[[tool]]\nkind = \"http\"\nname = \"h\"\ndescription = \"é\"\nurl = \"http://é/{é}?é={é}\"",
    "headers = { \"é\" = \"é{secret:é}secret:\" }\nbody = [{ \"é{/~\" = \"{é}\" }, \"}é\"]",
    "pointer = \"é\"\nallow_addresses = [\"::/0\", \"é\"]\nmethod = \"POST\"",
    "[secrets]\n\"é\" = { env = \"é\" }\nA = { env = \"PATH\" }",
    "[[policy]]\ntool = [\"*\", \"\"]\nrole = \"é\"",
    "[[role]]\nname = \"é\"\nprincipals = \"é\"",
    "[plugin.\"é\"]\npath = \"plug\"\nsecrets = [\"é\"]\nallow_addresses = [\"é\"]",
    "[mcp.m]\ncommand = \"${é\"\ncwd = \"../é\"\nalternatives = [\"m\", \"é\"]",
    "[hub.h]\nurl = \"https://é/{é\"\nkey = []\nttl = \"1s\"\nalternatives = [\"h\"]\ncall = {}",
    "max_rows = 99999999999999999999",
    "timeout = \"99999999999999y\"",
];

const SKILL: &str =
    "(---\n)?([a-z-]{1,6}: ?[\\[\\]{}&*!|>'\"%@a-zé:# \n-]{0,12}\n){0,4}(---\n)?\\PC{0,20}";

/// Little but the characters that mean something in YAML.
const YAML: &str = "---\n[ \t\n\r:,?&*!|>%@{}\\[\\]#a~\"'é-]{0,40}\n---\n";

fn lines() -> impl Strategy<Value = Vec<String>> {
    vec(prop_oneof![3 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()], 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    })]

    #[test]
    fn no_text_makes_the_readers_panic(
        lines in lines(),
        plugin in lines(),
        skill in prop_oneof![SKILL, YAML],
    ) {
        let project = format!("[plugin.plug]\npath = \"plug\"\n{}", lines.join("\n"));
        let _ = Folder::with(&project)
            .skill("notes", &skill)
            .file("plug/plugin.toml", plugin.join("\n"))
            .file("plug/skills/more/SKILL.md", &skill)
            .load_as(Mode::Inspect);
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    const TIMES: usize = 100_000;
    for text in [
        format!("x = {}", "[".repeat(TIMES)),
        format!("x = {}", "{a=".repeat(TIMES)),
        format!("x{} = 1", ".x".repeat(TIMES)),
        format!("[x{}]", ".x".repeat(TIMES)),
    ] {
        Folder::with(&text).problems();
    }
    for yaml in ["[", "{a: ", "- ", "? "] {
        let skill = format!("---\n{}\n---\n", yaml.repeat(TIMES));
        let project = Folder::with("").skill("deep", &skill).load();
        assert!(project.warnings().to_string().contains("`deep` is left out"));
    }
    let schema = format!("{}1{}", "[".repeat(TIMES), "]".repeat(TIMES));
    let tool = TOOL.replace("read_only", "schema_file = \"deep.json\"\nread_only");
    Folder::with(&format!("{DATABASE}{tool}")).file("deep.json", schema).problems();
}
