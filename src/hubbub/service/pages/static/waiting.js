// The countdown of the page Waiting. The time was told by the service; without this file the page loads itself again.

const timer = document.querySelector(".countdown");
const left = document.getElementById("left");
const bar = document.getElementById("bar");
const began = performance.now();
const seconds = Number(timer.dataset.seconds);

function written(n) {
  if (n < 60) return `${n} s`;
  const rest = n % 60;
  return `${Math.floor(n / 60)} min${rest ? ` ${rest} s` : ""}`;
}

const ticking = setInterval(() => {
  const rest = seconds - (performance.now() - began) / 1000;
  if (rest <= 0) {
    clearInterval(ticking);
    left.textContent = "now";
    bar.value = bar.max;
    setTimeout(() => location.reload(), 150);
    return;
  }
  left.textContent = written(Math.ceil(rest));
  bar.value = Math.max(0, bar.max - rest);
}, 200);
