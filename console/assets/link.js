// Mailed links carry their token in the fragment of the address, which browsers do not send
// to servers. The script moves the token into the form, and removes it from the address and
// the history.

const form = document.querySelector("[data-link]");
const otherwise = document.querySelector("[data-no-link]");
const token = decodeURIComponent(location.hash.slice(1));

if (token) {
  form.elements.token.value = token;
  history.replaceState(history.state, "", location.pathname + location.search);
}
form.hidden = form.elements.token.value === "";
if (otherwise) otherwise.hidden = !form.hidden;
(form.hidden ? otherwise : form)?.querySelector("input:not([type=hidden])")?.focus();
