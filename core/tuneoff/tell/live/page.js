"use strict";
// Keeps the page up to date: asks for it again, and puts in what differs. The server has escaped all that comes from the folder.
(function () {
  var every = 2000, afterEnd = 15000;
  var announced = null, waiting = null;

  function at(id) { return document.getElementById(id); }

  function show(page) {
    document.title = page.title;
    page.querySelectorAll("[id]:not(#announce)").forEach(function (one) {
      var shown = at(one.id);
      if (!shown) { location.reload(); } else if (shown.outerHTML !== one.outerHTML) { shown.replaceWith(one); }
    });
    var news = at("activity").dataset.activity + at("ended").textContent;  // a screen reader hears of runs that end, not of every figure
    if (announced !== null && announced !== news) { at("announce").textContent = at("ended").textContent; }
    announced = news;
  }

  function poll() {
    if (document.hidden) { return; }
    fetch("./", {cache: "no-store", redirect: "error"}).then(function (answer) {
      if (!answer.ok) { throw new Error(answer.status); }
      return answer.text();
    }).then(function (text) {
      var page = new DOMParser().parseFromString(text, "text/html");
      if (page.documentElement.dataset.plan !== document.documentElement.dataset.plan) { location.reload(); return; }
      show(page);
      again(["finished", "stopped"].includes(at("activity").dataset.activity) ? afterEnd : every);
    }).catch(function () {
      at("connection").hidden = false;
      again(every);
    });
  }

  function again(after) { clearTimeout(waiting); waiting = setTimeout(poll, after); }

  if (location.search) { history.replaceState(null, "", location.pathname); }  // the token is a cookie now
  document.addEventListener("visibilitychange", function () { if (!document.hidden) { again(0); } });
  again(every);
})();
