// Required before a program that would listen on every interface: without an address it listens on loopback.
// Not by handing `listen` an address: that is resolved first, and these programs ask at once which port they have.
"use strict";
const { Server } = require("node:net");
const { _listen2 } = Server.prototype;
Server.prototype._listen2 = function (address, port, ...others) {
  if (address || typeof port !== "number" || port < 0) return _listen2.call(this, address, port, ...others);
  const [, ...rest] = others;
  return _listen2.call(this, "127.0.0.1", port, 4, ...rest);
};
