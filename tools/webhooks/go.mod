// The official library of Standard Webhooks is a module of its own, so that Rolecall does not depend on it.
module github.com/rolecall/rolecall/tools/webhooks

go 1.26

require github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
