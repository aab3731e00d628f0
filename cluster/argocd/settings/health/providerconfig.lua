-- Health of a provider's configuration. It is as it was written, unless the provider was newer than a definition and said so.
-- What uses it keeps it from being deleted.
local status = obj.status or {}
local users = status.users or 0
if obj.metadata.deletionTimestamp ~= nil then
  if users > 0 then
    return { status = "Degraded", message = "deletion is blocked: in use by " .. users }
  end
  return { status = "Progressing", message = "being deleted" }
end
for _, c in ipairs(status.conditions or {}) do
  if c.type == "DefinitionsCurrent" and c.status == "False" then
    local code = c.reason == "DefinitionsNotReady" and "Progressing" or "Degraded"
    return { status = code, message = c.message or c.reason or "" }
  end
end
return { status = "Healthy", message = "" }
