// A sample shows the color in the form of the settings before it is saved. The text on it is
// white or black, the one with more contrast, as in brand.go.

const preview = document.querySelector("[data-color-field]");
const field = document.getElementById(preview.dataset.colorField);
const picker = preview.querySelector("input");
const sample = preview.querySelector(".color-sample");

/** luminance returns the relative luminance of a color in the form #rrggbb (WCAG 2.2). */
function luminance(color) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** textOn returns the color of text on the color. */
function textOn(color) {
  const light = luminance(color) + 0.05;
  return 1.05 / light >= light / 0.05 ? "#ffffff" : "#000000";
}

function show() {
  const color = field.value.toLowerCase();
  if (!/^#[0-9a-f]{6}$/.test(color)) { // empty, or not complete yet
    sample.style.removeProperty("--sample");
    sample.style.removeProperty("--on-sample");
    return;
  }
  picker.value = color;
  sample.style.setProperty("--sample", color);
  sample.style.setProperty("--on-sample", textOn(color));
}

picker.addEventListener("input", () => {
  field.value = picker.value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
});
field.addEventListener("input", show);
show();
