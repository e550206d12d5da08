// Forms that are answered by a passkey: data-passkey is what the browser asks an
// authenticator for, and the field passkey takes what that says.

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) continue;
  form.hidden = false;
  const fault = form.querySelector(".fault");
  form.addEventListener("submit", async (event) => {
    if (form.elements.passkey.value) return;
    event.preventDefault();
    fault.hidden = true;
    try {
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(form.dataset.passkey));
      const credential = await navigator.credentials.get({ publicKey });
      form.elements.passkey.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch {
      fault.textContent = "No passkey was given. Try again, or sign in with your password.";
      fault.hidden = false;
    }
  });
}
