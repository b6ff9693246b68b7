//! Databases of other programs, from the command line.

use std::fs;

use serde_json::json;
use toolcrib_testbed::PostgresServer;

use crate::support::Project;

#[test]
fn no_command_changes_one_byte_of_an_existing_file() {
    let elsewhere = tempfile::tempdir().unwrap();
    let shop = elsewhere.path().join("shop.db");
    let connection = rusqlite::Connection::open(&shop).unwrap();
    connection.execute_batch("CREATE TABLE orders (id); INSERT INTO orders VALUES (7)").unwrap();
    drop(connection);
    let before = fs::read(&shop).unwrap();
    let sections = format!(
        "[agent]\nmodel = 'script:model.toml'\n[database.shop]\nfile = '{}'\n\
         [database.own]\nfile = 'own.db'\nseed = 'seed.sql'\n\
         [[tool]]\nkind = 'sql_explore'\nname = 'shop'\ndatabase = 'shop'\n",
        shop.display()
    );
    let project = Project::of(&[
        ("toolcrib.toml", &sections),
        ("seed.sql", "CREATE TABLE own (id INTEGER);"),
        ("model.toml", "[[rule]]\ntext = 'done'\n"),
    ]);
    let query = "sql=SELECT id FROM orders";
    for args in [
        &["check"] as &[&str],
        &["menu"],
        &["tools"],
        &["call", "shop_list_tables"],
        &["call", "shop_query", query],
        &["call", "shop_query", query, "--fresh"],
        &["run", "hello"],
        &["run", "hello", "--fresh"],
        &["check", "--offline"],
    ] {
        let outcome = project.toolcrib(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        assert_eq!(fs::read(&shop).unwrap(), before, "{args:?}");
    }
    let outcome = project.toolcrib(&["call", "shop_query", "sql=DROP TABLE orders"]);
    assert!(outcome.stderr.contains("the statement writes"), "{}", outcome.stderr);
    assert_eq!(fs::read(&shop).unwrap(), before);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1, "nothing was put beside it");
}

#[test]
fn the_example_answers_from_its_file_and_only_the_tool_that_may_write_changes_it() {
    let project = Project::copy_of("own-database");
    let stock = || {
        let connection = rusqlite::Connection::open(project.path().join("shop.db")).unwrap();
        let stock = "SELECT stock FROM products WHERE id = 2";
        connection.query_row(stock, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    let before = fs::read(project.path().join("shop.db")).unwrap();
    let outcome = project.toolcrib(&["run", "-q", "What did we sell in Porto?", "--fresh"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(
        outcome.stdout,
        "2 x Cordless drill: 258.00\n5 x Spirit level: 94.50\n2 x Claw hammer: 49.00\n\
         401.50 euro in Porto.\n"
    );
    let delete = project.toolcrib(&["call", "shop_query", "sql=DELETE FROM orders"]);
    assert!(delete.stderr.contains("the statement writes"), "{}", delete.stderr);
    let restock = ["call", "restock", "product_id=2", "pieces=20"];
    let analyst = project.toolcrib(&[&restock[..], &["--as", "ana"]].concat());
    assert_eq!(analyst.code, Some(1), "{}", analyst.stdout);
    assert!(analyst.stderr.contains("Analysts read, they do not write."), "{}", analyst.stderr);
    assert_eq!(fs::read(project.path().join("shop.db")).unwrap(), before);
    assert_eq!(stock(), 0);
    assert_eq!(project.toolcrib(&restock).code, Some(0));
    assert_eq!(stock(), 20);
}

#[test]
fn an_error_of_a_statement_is_said_once() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            "[database.shop]\nfile = 'shop.db'\nseed = 'seed.sql'\n\
             [[tool]]\nkind = 'sql_explore'\nname = 'shop'\ndescription = 'Orders.'\n\
             [[tool]]\nkind = 'sql'\nname = 'add'\ndescription = 'Adds an order.'\n\
             statements = [\"INSERT INTO orders VALUES (1)\"]\n",
        ),
        (
            "seed.sql",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1);",
        ),
    ]);
    for (args, message) in [
        (
            &["call", "shop_query", "sql=SELECT idd FROM orders"] as &[_],
            "input_invalid: database `shop`: no such column: idd; did you mean `id`?",
        ),
        (
            &["call", "shop_query", "sql=SELECT id FROM orders WHERE id = ?"],
            "input_invalid: the statement has a parameter without a value: `?`; write the value itself",
        ),
        (
            &["call", "add"],
            "execution_failed: database `shop`: UNIQUE constraint failed: orders.id",
        ),
    ] {
        let outcome = project.toolcrib(args);
        assert_eq!(outcome.code, Some(1), "{args:?}: {}", outcome.stdout);
        assert_eq!(outcome.stderr.trim_end(), format!("error: {message}"), "{args:?}");
    }
}

#[test]
fn a_server_is_read_over_verified_tls() {
    let Some(server) = PostgresServer::shared() else { return };
    let database = server.database("CREATE TABLE orders (id int); INSERT INTO orders VALUES (7)");
    let database = database.unwrap();
    let grant = format!(
        "CREATE ROLE cli_reader LOGIN; GRANT SELECT ON orders TO cli_reader; \
         GRANT CONNECT ON DATABASE {database} TO cli_reader"
    );
    server.psql(&database, &grant).unwrap();
    let project = Project::of(&[(
        "toolcrib.toml",
        "[database.shop]\nurl = 'secret:SHOP'\n[secrets]\nSHOP = { env = 'SHOP_DATABASE_URL' }\n\
         [[tool]]\nkind = 'sql_explore'\nname = 'shop'\n",
    )]);
    let run = |url: &str, args: &[&str]| {
        let mut command = project.command(args);
        command.env("SHOP_DATABASE_URL", url);
        if let Some(certificate) = server.certificate() {
            command.env("SSL_CERT_FILE", certificate);
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let query = ["call", "shop_query", "sql=SELECT id FROM orders", "--json"];
    for url in [
        server.url("cli_reader", &database),
        server.tcp_url("cli_reader", &database, "sslmode=disable"),
        server.tcp_url("cli_reader", &database, "sslmode=verify-full"),
    ] {
        if url.contains("verify-full") && server.certificate().is_none() {
            toolcrib_skip::skip("openssl is not installed, so the server has no certificate");
            continue;
        }
        let (code, stdout, stderr) = run(&url, &query);
        assert_eq!(code, Some(0), "{url}: {stderr}");
        let result: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(result["structured"], json!({ "rows": [{ "id": 7 }] }), "{stdout}");
    }
    // The owner may write: the role that it needs is printed, and its position is that of the tool.
    let (code, _, stderr) = run(&server.url("owner", &database), &["check"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is a superuser") && stderr.contains("CREATE ROLE"), "{stderr}");
    // Nothing is connected to, and the tools are listed.
    let (code, stdout, stderr) = run("host=/nowhere user=x", &["menu", "--offline"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("shop_query"), "{stdout}");
}
