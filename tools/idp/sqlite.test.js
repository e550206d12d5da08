delete process.env.ROLECALL_TEST_POSTGRES; // before the harness reads it
await import("./browser.js");
