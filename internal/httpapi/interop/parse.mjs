// Parses each item of the JSON array in a file with the CloudEvents SDK for JavaScript, and prints the
// number of items and of their types. It fails if the SDK refuses an item, or reads another value than
// the item has.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { CloudEvent, HTTP } from 'cloudevents'

const items = JSON.parse(readFileSync(process.argv[2], 'utf8'))
for (const item of items) {
  const message = { headers: { 'content-type': 'application/cloudevents+json' }, body: JSON.stringify(item) }
  for (const event of [new CloudEvent(item), HTTP.toEvent(message)]) {
    assert.ok(event.validate())
    for (const name of ['specversion', 'id', 'source', 'type', 'subject', 'datacontenttype']) {
      assert.equal(event[name], item[name])
    }
    assert.equal(Date.parse(event.time), Date.parse(item.time))
    assert.deepEqual(event.data, item.data)
  }
}
const batch = { headers: { 'content-type': 'application/cloudevents-batch+json' }, body: JSON.stringify(items) }
assert.equal(HTTP.toEvent(batch).length, items.length)
console.log(`${items.length} ${new Set(items.map((item) => item.type)).size}`)
