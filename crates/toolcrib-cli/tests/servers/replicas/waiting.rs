//! Calls that wait for their client, whose answer reaches another replica.

use super::*;

/// A request of 2026-07-28 of a client that can be asked, with more parameters.
fn ask(http: &Http, more: &[(&str, &Value)]) -> Value {
    let mut params = json!({
        "name": "mcp__desk__ask", "arguments": { "form": r#"{"type":"object","properties":{}}"# },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    for (name, value) in more {
        params[*name] = (*value).clone();
    }
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
        Mcp-Name: mcp__desk__ask\r\n";
    let (_, answer) = http.send(Some(ANN), headers, &message(7, "tools/call", &params));
    result(&answer)
}

/// A request of a server in the stream of a call, and the rest of the stream.
fn asked_in(http: &Http, request: &str) -> (TcpStream, Value) {
    let mut stream = http.open(request);
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = stream.read(&mut part).unwrap();
        read.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&read);
        assert!(length > 0, "{text}");
        let asked = text.lines().find(|line| line.contains("elicitation/create"));
        let asked = asked.and_then(|line| line.strip_prefix("data: "));
        if let Some(asked) = asked.and_then(|json| serde_json::from_str(json).ok()) {
            return (stream, asked);
        }
    }
}

/// Begins a session of a client that shows forms; its id, and the headers of its requests.
fn begin_with_forms(http: &Http) -> (String, String) {
    let begin = message(
        1,
        "initialize",
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        }),
    );
    let (_, answer) = http.send(Some(ANN), "", &begin);
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let headers = format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n");
    (session.to_owned(), headers)
}

/// A call that asks its client for a form.
fn ask_for_form() -> Value {
    let form = json!({ "form": r#"{"type":"object","properties":{}}"# });
    json!({ "name": "mcp__desk__ask", "arguments": form })
}

#[test]
fn an_answer_to_a_server_reaches_its_call_through_each_replica() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let (session, headers) = begin_with_forms(&one);
    let call = ask_for_form();
    for (id, asks, answers) in [(10, &one, &two), (11, &two, &one), (12, &two, &two)] {
        let who = json!({ "name": "mcp__desk__who" });
        wait_for(|| asks.call_in(ANN, &session, 20 + id, &who).1.contains("who="));
        let request = asks.request(Some(ANN), &headers, &message(id, "tools/call", &call));
        let (mut stream, asked) = asked_in(asks, &request);
        let reply =
            json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
        let (status, answer) = answers.send(Some(ANN), &headers, &reply.to_string());
        assert_eq!(status, "202", "{answer}");
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("decline"), "{rest}");
    }
}

#[test]
fn an_answer_to_one_replica_is_none_for_another_one_without_an_address() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica_at("0.0.0.0:0"), team.replica_at("0.0.0.0:0"));
    let (session, headers) = begin_with_forms(&one);
    let who = json!({ "name": "mcp__desk__who" });
    let [of_one, of_two] = [(10, &one), (11, &two)].map(|(id, http)| {
        wait_for(|| http.call_in(ANN, &session, 20 + id, &who).1.contains("who="));
        let call = message(id, "tools/call", &ask_for_form());
        asked_in(http, &http.request(Some(ANN), &headers, &call))
    });
    assert_ne!(of_one.1["id"], of_two.1["id"]);
    // Each is the first question of its replica: their numbers are equal.
    for (id, action) in
        [(&json!(1), "accept"), (&of_one.1["id"], "accept"), (&of_two.1["id"], "decline")]
    {
        let reply = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": action } });
        let (status, answer) = two.send(Some(ANN), &headers, &reply.to_string());
        assert_eq!(status, "202", "{answer}");
    }
    let (mut stream, mut rest) = (of_two.0, String::new());
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("decline"), "{rest}");
}

#[test]
fn a_call_that_waits_for_input_goes_on_from_each_replica_and_once() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    for (asked, answered) in [(&one, &two), (&two, &one), (&one, &one)] {
        let waits = ask(asked, &[]);
        let round = declined(&waits);
        let round = round.each_ref().map(|(name, value)| (*name, value));
        let done = ask(answered, &round);
        assert!(done.to_string().contains("decline"), "{done}");
        for http in [asked, answered] {
            let again = ask(http, &round);
            assert_eq!(again["error"]["code"], json!(-32602), "{again}");
        }
    }
    // With its replica, the call is gone.
    let waits = ask(&one, &[]);
    drop(one);
    let gone = ask(&two, &[("requestState", &waits["result"]["requestState"])]);
    assert_eq!(gone["error"]["code"], json!(-32602), "{gone}");
}

/// The next round of a call that waits, with a refusal of the form.
fn declined(waits: &Value) -> [(&'static str, Value); 2] {
    let requests = waits["result"]["inputRequests"].as_object();
    let keys = requests.unwrap_or_else(|| panic!("{waits}")).keys();
    let responses = keys.map(|key| (key.clone(), json!({ "action": "decline" })));
    [
        ("requestState", waits["result"]["requestState"].clone()),
        ("inputResponses", responses.collect()),
    ]
}

#[test]
fn a_program_at_the_address_of_a_dead_replica_receives_no_token() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let round = declined(&ask(&one, &[]));
    let address = one.address().to_owned();
    drop(one);
    let other = TcpListener::bind(&*address).unwrap();
    let received = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (mut received, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = stream.read(&mut part) {
            received.extend_from_slice(&part[..length]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n");
        }
        String::from_utf8(received).unwrap()
    });
    let gone = ask(&two, &round.each_ref().map(|(name, value)| (*name, value)));
    assert_eq!(gone["error"]["code"], json!(-32602), "{gone}");
    let received = received.join().unwrap();
    assert!(received.starts_with("GET /healthz"), "{received}");
    assert!(!received.contains(ANN) && !received.contains("requestState"), "{received}");
}

#[test]
fn a_replica_that_drains_continues_the_call_that_waits_there() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let round = declined(&ask(&one, &[]));
    one.terminate();
    wait_for(|| one.get("/readyz").0 == "503");
    assert_eq!(one.post(Some(ANN), "tools/list", &json!({}), None).0, "503");
    let done = ask(&two, &round.each_ref().map(|(name, value)| (*name, value)));
    assert!(done.to_string().contains("decline"), "{done}");
    assert_eq!(one.ended(), Some(0));
}

#[test]
fn the_end_of_a_session_ends_its_calls_at_the_other_replica() {
    let Some(team) = Team::new(60, "") else { return };
    let (one, two) = (team.replica(), team.replica());
    let (session, headers) = begin_with_forms(&one);
    let who = json!({ "name": "mcp__desk__who" });
    wait_for(|| one.call_in(ANN, &session, 20, &who).1.contains("who="));
    let call = message(10, "tools/call", &ask_for_form());
    let (mut stream, _) = asked_in(&one, &one.request(Some(ANN), &headers, &call));
    assert_eq!(two.delete(ANN, &session), "202");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    // Its server may learn first that the client has gone.
    assert!(!rest.contains("answer=") || rest.contains("the client has gone"), "{rest}");
}

fn cancel_of(id: u32) -> String {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string()
}

#[test]
fn a_call_is_cancelled_through_the_other_replica() {
    const SLOW: &str = "[[tool]]\nkind = \"command\"\nname = \"slow\"\ndescription = \"Waits.\"\n\
        program = \"sh\"\nargs = [\"-c\", \"echo began >> slow.txt; exec sleep 1000\"]\n\
        inherit_env = [\"PATH\"]\ntimeout = \"1000s\"\n";
    let Some(team) = Team::new(60, SLOW) else { return };
    let (one, two) = (team.replica(), team.replica());
    let session = one.begin(ANN);
    let headers = format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n");
    let began = |calls| wait_for(|| team.lines("slow.txt").len() == calls);
    thread::scope(|scope| {
        let call = |id| {
            let (one, session) = (&one, &session);
            scope.spawn(move || one.call_in(ANN, session, id, &json!({ "name": "slow" })))
        };
        // The other replica need not know the session.
        let cancel = |id| {
            let (status, answer) = two.send(Some(ANN), &headers, &cancel_of(id));
            assert_eq!(status, "202", "{answer}");
        };
        let (first, second) = (call(11), call(12));
        began(2);
        cancel(11);
        // Each call would last longer than a response is waited for.
        let (_, answer) = first.join().unwrap();
        assert!(!answer.contains("\"isError\":false"), "{answer}");
        assert!(!second.is_finished());
        // A later request with the same id is another one.
        let third = call(11);
        began(3);
        cancel(12);
        second.join().unwrap();
        assert!(!third.is_finished());
        let who = json!({ "name": "mcp__desk__who" });
        assert!(two.call_in(ANN, &session, 13, &who).1.contains("who="));
        assert_eq!(one.delete(ANN, &session), "202");
        third.join().unwrap();
        assert_eq!(two.send(Some(ANN), &headers, &cancel_of(12)).0, "404");
    });
}
