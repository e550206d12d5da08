// Forms that accept a passkey. The attribute data-passkey of a field contains the WebAuthn
// options, and the field receives the response of the authenticator. The script requests a
// passkey in two cases: the user submits the form without another proof, or clicks a button
// with data-by-passkey.

const known = Boolean(window.PublicKeyCredential?.parseRequestOptionsFromJSON && PublicKeyCredential.parseCreationOptionsFromJSON);
document.documentElement.classList.toggle("passkeys", known);

const words = JSON.parse(document.body.dataset.messages);

let asking; // the current request; a browser allows only one at a time

const failures = {
  NotAllowedError: words.passkeyCanceled,
  InvalidStateError: words.passkeyExists,
  NotSupportedError: words.passkeyUnsupported,
  ConstraintError: words.passkeyUnverified,
};

function failureOf(error, publicKey) {
  if (error.name !== "SecurityError") return failures[error.name] ?? words.passkeyFailed;
  return words.passkeyWrongHost.replaceAll("{Expected}", publicKey.rpId ?? publicKey.rp.id).replace("{Actual}", location.hostname);
}

async function answer(field) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const options = JSON.parse(field.dataset.passkey);
  const credential = field.dataset.passkeyDoes === "makes"
    ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options), signal })
    : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options), signal });
  return JSON.stringify(credential.toJSON());
}

async function ask(form, field, submitter) {
  const says = form.querySelector("[data-passkey-says]");
  says.className = "quiet";
  says.textContent = words.passkeyWaiting;
  says.hidden = false;
  try {
    field.value = await answer(field);
    form.requestSubmit(submitter);
  } catch (error) {
    if (error.name === "AbortError") return; // another request replaced this one, or the dialog was closed
    says.className = "fault";
    says.textContent = failureOf(error, JSON.parse(field.dataset.passkey));
  }
}

// This listener runs in the capture phase, so that the form is submitted only after the
// authenticator has responded.
document.addEventListener("submit", (event) => {
  const form = event.target;
  const field = form.querySelector("[data-passkey]");
  if (!known || !field || field.value !== "") return;
  if ([...form.querySelectorAll("[data-proof]")].some((other) => other.value !== "")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  ask(form, field, event.submitter);
}, { capture: true });

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-by-passkey]");
  if (!button) return;
  for (const other of button.form.querySelectorAll("[data-proof]")) other.value = "";
  button.form.requestSubmit();
});

document.getElementById("dialog")?.addEventListener("close", () => asking?.abort());
