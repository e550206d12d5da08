// Buttons that save or print secrets that are shown only once.

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save], [data-print]");
  if (!button) return;
  if (!button.dataset.save) {
    print();
    return;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${document.getElementById(button.dataset.save).innerText}\n`], { type: "text/plain" }));
  link.download = button.dataset.file;
  link.click();
  URL.revokeObjectURL(link.href);
});
