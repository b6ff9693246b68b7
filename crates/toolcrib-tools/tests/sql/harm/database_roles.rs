//! A role that may do more than read, and the statements that take its other rights.

use toolcrib_tools::sql_explore::ExploreTool;

use crate::server::{Shop, explorer};

/// The rights of a role `$`, and the statements that remove them, in the order of the message.
const RIGHTS: [(&str, &[&str]); 20] = [
    ("ALTER ROLE $ CREATEROLE", &["ALTER ROLE $ NOCREATEROLE;"]),
    ("ALTER ROLE $ CREATEDB", &["ALTER ROLE $ NOCREATEDB;"]),
    ("GRANT CREATE ON SCHEMA public TO $", &["REVOKE CREATE ON SCHEMA public FROM $;"]),
    ("GRANT CREATE ON SCHEMA public TO PUBLIC", &["REVOKE CREATE ON SCHEMA public FROM PUBLIC;"]),
    ("CREATE SCHEMA own AUTHORIZATION $", &["ALTER SCHEMA own OWNER TO CURRENT_USER;"]),
    (
        "GRANT CREATE ON DATABASE @ TO $; GRANT pg_write_all_data TO $",
        &["REVOKE pg_write_all_data FROM $;", "REVOKE CREATE ON DATABASE @ FROM $;"],
    ),
    (
        "GRANT USAGE ON SEQUENCE orders_id_seq TO $",
        &["REVOKE USAGE ON SEQUENCE public.orders_id_seq FROM $;"],
    ),
    (
        "GRANT UPDATE ON SEQUENCE orders_id_seq TO PUBLIC",
        &["REVOKE UPDATE ON SEQUENCE public.orders_id_seq FROM PUBLIC;"],
    ),
    (
        "CREATE SEQUENCE \"An other\"; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO $",
        &["REVOKE UPDATE, USAGE ON ALL SEQUENCES IN SCHEMA public FROM $;"],
    ),
    (
        "CREATE SEQUENCE mine; ALTER SEQUENCE mine OWNER TO $",
        &["ALTER TABLE public.mine OWNER TO CURRENT_USER;"],
    ),
    (
        "CREATE ROLE higher_$; GRANT higher_$ TO $; GRANT USAGE ON orders_id_seq TO higher_$; \
         GRANT INSERT (total) ON orders TO higher_$",
        &[
            "REVOKE USAGE ON SEQUENCE public.orders_id_seq FROM higher_$;",
            "REVOKE INSERT ON TABLE public.orders FROM higher_$;",
        ],
    ),
    (
        "GRANT CREATE, USAGE ON SCHEMA pg_catalog TO $",
        &["REVOKE CREATE ON SCHEMA pg_catalog FROM $;"],
    ),
    (
        "GRANT CREATE ON SCHEMA information_schema TO PUBLIC",
        &["REVOKE CREATE ON SCHEMA information_schema FROM PUBLIC;"],
    ),
    (
        "GRANT UPDATE, SELECT ON pg_class TO $",
        &["REVOKE UPDATE ON TABLE pg_catalog.pg_class FROM $;"],
    ),
    (
        "GRANT INSERT ON information_schema.sql_features TO $",
        &["REVOKE INSERT ON TABLE information_schema.sql_features FROM $;"],
    ),
    (
        "GRANT UPDATE (relname) ON pg_class TO PUBLIC; GRANT DELETE ON pg_index TO PUBLIC",
        &["REVOKE DELETE, UPDATE ON TABLE pg_catalog.pg_class, pg_catalog.pg_index FROM PUBLIC;"],
    ),
    (
        "GRANT INSERT ON ALL TABLES IN SCHEMA pg_catalog TO $",
        &["REVOKE INSERT ON ALL TABLES IN SCHEMA pg_catalog FROM $;"],
    ),
    (
        "CREATE ROLE \"Third $\"; GRANT USAGE ON SCHEMA public TO \"Third $\"; \
         GRANT UPDATE ON orders, refunds TO \"Third $\" WITH GRANT OPTION; GRANT UPDATE ON orders TO $; \
         SET ROLE \"Third $\"; GRANT UPDATE ON orders, refunds TO $; RESET ROLE",
        &[
            "REVOKE UPDATE ON TABLE public.orders FROM $;",
            "SET ROLE \"Third $\"; REVOKE UPDATE ON TABLE public.orders, public.refunds FROM $; RESET ROLE;",
        ],
    ),
    (
        "CREATE ROLE third_$; GRANT CREATE ON SCHEMA public TO third_$ WITH GRANT OPTION; \
         GRANT CREATE ON DATABASE @ TO third_$ WITH GRANT OPTION; SET ROLE third_$; \
         GRANT CREATE ON SCHEMA public TO PUBLIC; GRANT CREATE ON DATABASE @ TO $; RESET ROLE",
        &[
            "SET ROLE third_$; REVOKE CREATE ON DATABASE @ FROM $; RESET ROLE;",
            "SET ROLE third_$; REVOKE CREATE ON SCHEMA public FROM PUBLIC; RESET ROLE;",
        ],
    ),
    ("ALTER DATABASE @ OWNER TO $", &["ALTER DATABASE @ OWNER TO CURRENT_USER;"]),
];

#[test]
fn each_right_is_refused_with_the_statements_that_remove_it() {
    for (position, (grant, expected)) in RIGHTS.into_iter().enumerate() {
        let Some(shop) = Shop::new() else { return };
        let role = format!("rights_{position}_{}", shop.name);
        let of_role = |text: &str| text.replace('$', &role).replace('@', &shop.name);
        shop.psql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}; \
             GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}"
        ));
        let explore = || explorer(ExploreTool::Query, &shop.open(&role, false), None);
        explore().unwrap();
        shop.psql(&of_role(grant));
        let error = explore().unwrap_err().to_string();
        let (_, run) = error.split_once("to permit it, run:\n").unwrap();
        let (run, _) = run.split_once("\nor use a role").unwrap();
        let expected: Vec<_> = expected.iter().map(|one| of_role(one)).collect();
        assert_eq!(run.lines().collect::<Vec<_>>(), expected, "{grant}: {error}");
        shop.psql(run);
        explore().unwrap_or_else(|error| panic!("{grant}: {error}"));
    }
}

#[test]
fn a_member_of_pg_read_all_data_may_explore() {
    let Some(shop) = Shop::new() else { return };
    let role = format!("reads_all_{}", shop.name);
    shop.psql(&format!("CREATE ROLE {role} LOGIN; GRANT pg_read_all_data TO {role}"));
    explorer(ExploreTool::Query, &shop.open(&role, false), None).unwrap();
}
