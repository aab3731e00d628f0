-- Health of a provider's configuration. It has no conditions. What uses it keeps it from being deleted.
local users = (obj.status or {}).users or 0
if obj.metadata.deletionTimestamp == nil then
  return { status = "Healthy", message = "" }
elseif users > 0 then
  return { status = "Degraded", message = "deletion is blocked: in use by " .. users }
end
return { status = "Progressing", message = "being deleted" }
